"""A spam filter from raw text: the heaviest words, an explained prediction, a saved model file."""

import tempfile
from pathlib import Path

from separatrix import AveragedPerceptron, TextFeatures, explain, load, save

SPAM = """
Win a free phone! Text YES to claim your prize now
Free entry to our weekly draw, reply WIN to enter
You have been selected for a cash prize, call now
URGENT! Your account won 500 pounds, claim today
Cheap loans approved in minutes, no questions, apply now
Last chance to claim your free holiday voucher
Congratulations, you won! Reply to collect your reward
Exclusive offer: free ringtones, text TONE to subscribe
Call this number to receive your guaranteed cash award
Double your money this week, limited offer, reply now
Your prize is waiting: call today before it expires
Get free minutes on every call, text FREE to join
"""

HAM = """
Are we still on for lunch at noon?
I'll call you when the train gets in
Can you pick up milk on the way home?
The meeting moved to three, same room
Happy birthday! See you at the party tonight
Sorry, I missed your call, was in class
Did you finish the report for Monday?
Mum says dinner is ready, come down
Running ten minutes late, order without me
Thanks for the book, I started it last night
The keys are under the mat, let yourself in
Good luck with the exam, text me how it went
"""

NEW = ["You won a free voucher, reply to claim", "Lunch on Monday? I'll order", "call me when you are home"]

spam, ham = SPAM.strip().splitlines(), HAM.strip().splitlines()
texts, labels = spam + ham, ["spam"] * len(spam) + ["ham"] * len(ham)
features = TextFeatures(ngram_range=(1, 1), columns="vocabulary", min_df=1)
X = features.fit_transform(texts)
model = AveragedPerceptron(rule="pa1", random_state=0, record=True).fit(X, labels)
print(f"{X.shape[0]} messages, {X.shape[1]} different words; corrections in each pass: {model.mistakes_per_pass_}")

heaviest = model.coef_[0].argsort()
print("most like spam:", ", ".join(features.names_of(j)[0] for j in heaviest[::-1][:6]))
print("most like ham: ", ", ".join(features.names_of(j)[0] for j in heaviest[:6]))

path = Path(tempfile.mkdtemp()) / "spam.sepx"
save(model, path, features=features)
filter_ = load(path)
for text, verdict in zip(NEW, filter_.predict(NEW), strict=True):
    print(f"{verdict:5}{text}")

explanation = explain(filter_, NEW[2])
print(f"\nWhy is {NEW[2]!r} {explanation.prediction}? Its score is {explanation.score:+.3f}:")
for term in explanation.terms[:5]:
    print(f"  {term.name:10}{term.value:.3f} × {term.weight:+.3f} = {term.product:+.3f}")
cause = max(explanation.causes, key=lambda cause: abs(cause.contribution))
print(f"The training message that moved it most: {texts[cause.example]!r}")
