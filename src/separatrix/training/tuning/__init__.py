"""Cross-validation of what `train` trains, and the search for a recipe.

In come the options of a training and a source, whose rows are read into memory (`examples.py`). `folds.py` predicts every
row by a pipeline that never saw it; `search.py` compares the recipes of `candidates.py` by such predictions; `selection.py`
is the plan, and says what a summary shows.
"""
