"""Evaluating a classifier on labelled rows: counts and scores come in, batch by batch, and an `Evaluation` goes out.

`counting.py` has `evaluate` and the tally, `evaluation.py` the figures, `ranking.py` what follows from scores; `display.py`
shows them in a terminal and a notebook; `report.py` writes a page, whose pictures `charts.py` draws.
"""
