"""How a table of text is written, told by its first megabyte.

In comes the beginning of a file; out goes a `Dialect`: `delimiters.py` finds the delimiter and whether quotes delimit
fields, `headers.py` whether the first line is a header and what the columns are called. `records.py` cuts any text of a file
into records.
"""
