"""Split addresses into their parts, from forty examples that somebody marked in a quarter of an hour."""

from pathlib import Path

from separatrix import SequencePerceptron, evaluate_sequences

KINDS = {"u": "unit", "n": "number", "s": "street", "c": "city", "p": "postcode", "o": "O"}
NEW = ["Flat 2, 18 Kings Avenue, Bath BA2 4QQ", "7 Bath Road, Wells BA5 2LB", "The Old Mill, Castle Hill, Oxford OX3 2DD"]


def marked(path):
    """Read lines such as `7/n Mill/s Lane/s ,/o Leeds/c`: a letter behind each word."""
    for line in path.read_text(encoding="utf-8").splitlines():
        words, letters = zip(*(token.rsplit("/", 1) for token in line.split()), strict=True)
        yield list(words), [KINDS[letter] for letter in letters]


def show(tagger, address):
    """Print the parts of an address, words with the same tag joined."""
    words = address.replace(",", " ,").split()
    parts = {}
    for word, tag in zip(words, tagger.predict([words])[0], strict=True):
        parts[tag] = f"{parts.get(tag, '')} {word}".strip()
    print(address, "".join(f"\n  {kind:9}{parts[kind]}" for kind in KINDS.values() if kind in parts and kind != "O"), sep="")


X, y = zip(*marked(Path(__file__).with_name("addresses.txt")), strict=True)
# How good is it? Learn from four fifths and tag the others, five times: no address is judged by a tagger that saw it.
told, tagged = [], []
for fold in range(5):
    rest = [i for i in range(len(X)) if i % 5 != fold]
    tagger = SequencePerceptron(random_state=0).fit([X[i] for i in rest], [y[i] for i in rest])
    told += y[fold::5]
    tagged += tagger.predict(X[fold::5])
right = sum(mine == theirs for mine, theirs in zip(told, tagged, strict=True))
accuracy = evaluate_sequences(told, tagged).accuracy
print(f"left out and tagged: {accuracy:.3f} of the words are right, {right} of {len(X)} addresses as a whole\n")

tagger = SequencePerceptron(random_state=0, record=True).fit(X, y)
for address in NEW:
    show(tagger, address)

# Why is the Bath of Bath Road a street, and not the city? What is before and after it decides.
why = tagger.explain(NEW[1].replace(",", " ,").split(), 1, n=3)
print(f"\n{why.tag} rather than {why.against}:", ", ".join(f"{term.name} {term.product:+.2f}" for term in why.terms))
