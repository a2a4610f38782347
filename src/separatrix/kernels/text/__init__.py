"""Kernels that turn texts and table columns into the rows of a CSR matrix.

Bytes of UTF-8 are folded (`characters`), cut into n-grams and hashed (`tokens`), numbered (`dictionary`) and counted
(`counts`); columns of numbers and categories become features in `tables`. The caller makes room for all that is written.
"""
