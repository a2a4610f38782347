"""What the prover searches with: nearest points, linear programs, Newton's method, exact arithmetic, margins, faces.

The vectors of a data set come in as `Pairs`; separators, witnesses and margins go out, found in floating point and rebuilt
as fractions. Nothing here is trusted: `proofs/checker.py`, which imports none of it, checks what leaves the room above.
"""
