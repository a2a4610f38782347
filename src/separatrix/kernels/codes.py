"""The integers by which kernels tell rules and ties apart. They are compiled into the kernels, so they live beside them."""

from typing import Final
from zlib import crc32


def rule_code(name: str) -> int:
    """Return the integer by which kernels know a rule.

    It follows from the rule's name, so that the table of rules and the kernels agree without a list of numbers.
    """
    return crc32(name.encode())


TIE_IS_MISTAKE: Final = 0
TIE_IS_PLUS: Final = 1
TIE_IS_FIRST: Final = 2

NOBODY: Final = -1
"""In place of a class: none is raised, or none is lowered."""
