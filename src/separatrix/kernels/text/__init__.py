"""Compiled loops over the bytes of texts: characters, tokens, hashes, counts, dictionaries; and over table columns."""
