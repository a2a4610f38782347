"""Feed messages to a feedback server as a stream, and watch the progressive error fall.

    separatrix serve spam/ --text &
    python examples/spam_feedback.py SMSSpamCollection.gz

The file has a label, a tab and a message a line, plain or gzipped: the SMS Spam Collection is one. Each message is judged
before the server learns from it, as a user's spam button would have it.
"""

import argparse
import gzip

from separatrix.web import Client


def messages(path):
    """Yield each message of the file with its label."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        for line in file:
            label, _, text = line.rstrip("\n").partition("\t")
            yield text, label


def main():
    """Feed the file, a batch at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--url", default="http://127.0.0.1:8017")
    parser.add_argument("--token", default="")
    parser.add_argument("--batch", type=int, default=500)
    asked = parser.parse_args()
    with Client(asked.url, token=asked.token) as client:
        print("examples   errors among the last   progressive error")
        errors = 0
        for answer in client.learn_many(messages(asked.file), size=asked.batch):
            errors += answer["errors"]
            last = f"{answer['errors']:,} of {answer['learned']:,}"
            print(f"{answer['examples']:8,}   {last:>21}   {errors / answer['examples']:17.2%}")
        for text in ("Congratulations, you won a free prize: call now!", "See you at noon, love"):
            print(f"{client.predict(text)['prediction']:>8}: {text}")


if __name__ == "__main__":
    main()
