"""From the columns of a table to features: the parts of `features.table`.

In comes a table in any form (`arrow_columns`); `roles` decides what each column is used for, and `notations`, `date_forms`
and `sets` how text is written that is more than text; `numbers`, `dates`, `categories` and `texts` learn one column each,
and `schema` holds all of them. Out goes a CSR matrix with the columns' features side by side.
"""

NUMBERS = ("bins", "standard", "max-abs", "none")
"""How numbers become features; help texts read it without importing any of these modules."""
