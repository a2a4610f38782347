"""Compiled loops over rows: scoring, corrections, passes, replays, dual training."""
