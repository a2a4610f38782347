"""Training on files that need not fit in memory.

In comes a data source; `ingest` turns it into blocks of rows, in memory or in a temporary file; `out_of_core` trains on the
blocks and can resume from any block.
"""
