"""A spam button: a server that predicts each message, then learns from it, and its falling error.

`python examples/spam_feedback.py SMSSpamCollection.gz` feeds a file (a label, a tab and a message a line) in place of the
made-up messages; `--url http://127.0.0.1:8017` asks a server that runs already in place of one of its own.
"""

import argparse
import contextlib
import gzip
import random
import re
import subprocess
import sys
import tempfile

from separatrix.web import Client

SPAM = ["free entry", "call now", "claim your prize", "you have won", "urgent", "cash reward", "reply stop", "limited offer"]
HAM = ["see you at noon", "call me later", "are you home", "lunch today", "thanks for that", "on my way", "love you", "ok"]
SAID = ["please", "today", "tomorrow", "really", "now", "again", "for you", "the bus", "at work", "this week"]


def made_up(n):
    """Yield messages with their labels: one in five is spam, and one in fifty bears the wrong label."""
    chance = random.Random(0)
    for _ in range(n):
        spam = chance.random() < 0.2
        words = chance.sample(SPAM if spam else HAM, 2) + chance.sample(SAID, 2)
        yield " ".join(chance.sample(words, 4)), "spam" if spam != (chance.random() < 0.02) else "ham"


def from_file(path):
    """Yield the messages of a file with their labels."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        for line in file:
            label, _, text = line.rstrip("\n").partition("\t")
            yield text, label


@contextlib.contextmanager
def own_server():
    """Start a server in a temporary folder, as `separatrix serve FOLDER --text` would; give its address."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "separatrix", "serve", folder, "--text", "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            yield next(found[1] for line in server.stderr if (found := re.search(r"on (http://\S+)", line)))
            server.terminate()


def feed(client, messages, size):
    """Learn from the messages, so many at a time, and show the error of each batch before it was learned from."""
    errors = 0
    print("examples  errors among the last  progressive error")
    for answer in client.learn_many(messages, size=size):
        errors += answer["errors"]
        last = f"{answer['errors']} of {answer['learned']}"
        print(f"{answer['examples']:8,}  {last:>21}  {errors / answer['examples']:17.2%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--url")
    options = parser.parse_args()
    messages = from_file(options.file) if options.file else made_up(2000)
    with contextlib.nullcontext(options.url) if options.url else own_server() as url, Client(url) as client:
        feed(client, messages, 250)
        for text in ("Free prize! Call now", "call me at noon, love"):
            explanation = client.explain(text)
            most = ", ".join(f"{term['name']} {term['product']:+.2f}" for term in explanation["terms"][:3])
            print(f"{explanation['prediction']:>4}: {text} ({most} …)")
