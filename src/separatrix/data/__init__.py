"""Data by name: the lectures' worked examples."""
