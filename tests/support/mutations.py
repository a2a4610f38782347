"""Files with something wrong in them: bytes changed, cut, moved, or words that stand for sizes and offsets replaced."""

import random

WORDS = [b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x01\0\0\0", b"\0\0\1\0"]
LONG_WORDS = [word + b"\0\0\0\0" for word in WORDS] + [b"\xff" * 8, b"\xff" * 7 + b"\x7f", b"\0" * 7 + b"\x80"]


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return data with one to four changes."""
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        at = draw.randrange(max(1, len(changed)))
        match draw.choice(["byte", "byte", "bit", "word", "long word", "cut", "drop", "repeat", "move"]):
            case "byte":
                changed[at : at + 1] = bytes([draw.choice([0, 1, 9, 10, 34, 44, 48, 127, 128, 255, draw.randrange(256)])])
            case "bit":
                changed[at : at + 1] = bytes([(changed[at : at + 1] or b"\0")[0] ^ 1 << draw.randrange(8)])
            case "word":
                at -= at % 4
                changed[at : at + 4] = draw.choice([*WORDS, draw.randbytes(4)])
            case "long word":
                at -= at % 8
                changed[at : at + 8] = draw.choice(LONG_WORDS)
            case "cut" if draw.random() < 0.3:
                del changed[at:]
            case "drop" | "cut":
                del changed[at : at + draw.randint(1, 40)]
            case "repeat":
                changed[at:at] = changed[at : at + draw.randint(1, 40)]
            case "move":
                begin = draw.randrange(max(1, len(changed)))
                changed[at:at] = changed[begin : begin + draw.randint(1, 16)]
    return bytes(changed)
