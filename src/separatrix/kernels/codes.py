"""The numbers by which kernels tell rules and ties apart. They are compiled into the kernels, so they live beside them."""

from typing import Final

PERCEPTRON: Final = 0
MARGIN: Final = 1
PA: Final = 2
PA1: Final = 3
PA2: Final = 4
AROW: Final = 5
AROW_FULL: Final = 6

TIE_IS_MISTAKE: Final = 0
TIE_IS_PLUS: Final = 1
TIE_IS_FIRST: Final = 2

NOBODY: Final = -1
"""In place of a class: none is raised, or none is lowered."""
