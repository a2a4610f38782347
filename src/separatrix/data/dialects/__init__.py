"""How a table of text is written, told by its first megabyte.

In comes the beginning of a file; out goes a `Dialect`: `delimiters.py` finds the delimiter and whether quotes delimit
fields, `beginnings.py` where the table begins, `headers.py` whether its first line is a header and what the columns are
called; `layouts.py` has what a model knows of a file without a header. `records.py` cuts any text of a file into records.
"""
