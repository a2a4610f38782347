"""`separatrix serve` for taggers of sequences: tag, and learn from corrected sequences.

Sequences as JSON come in; tags, and a journal of what was learned, go out.
"""
