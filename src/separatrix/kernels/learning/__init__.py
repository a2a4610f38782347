"""Kernels that learn: scores, corrections, passes, replays of recorded mistakes, and descent in the dual.

In come rows (dense or CSR, see `rows`), class codes and settings; weights are corrected in place, and each mistake is
written into columns that a ledger keeps. `passes` holds what a rule is, and every other file asks it there.
"""
