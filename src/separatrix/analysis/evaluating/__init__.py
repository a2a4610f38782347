"""Evaluating a classifier on labelled rows: counts and scores come in, batch by batch, and an `Evaluation` goes out.

`counting.py` has `evaluate` and the tally, `evaluation.py` the figures, `ranking.py` what follows from scores and
`probability_bins.py` what follows from probabilities; `document.py` has JSON, `display.py` what a terminal and a notebook
show, `report.py` a page, whose pictures `charts.py` draws.
"""
