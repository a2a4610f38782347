"""The public classifiers, with scikit-learn's contract.

In come arrays, CSR matrices or data frames and labels; they are checked and handed to `learners` and `solvers`. Out go
fitted attributes, predictions, and a view of the fit for a notebook.
"""
