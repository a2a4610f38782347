"""From texts to counted n-grams: the parts of `features.text`.

In comes a column of texts (`arrow_text`); `characters` and `ngrams` cut it into n-grams, `indexing` gives each n-gram a
column (hashed, or from the exact `vocabulary`), and `counts` collects the rows. Out goes a CSR matrix.
"""
