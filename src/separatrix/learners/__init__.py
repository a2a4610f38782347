"""The linear learners without scikit-learn: parameters, training, predictions, and their state for a file.

In come rows and class codes; out goes a fitted learner. The command line, the server and the workers of a cluster use these;
`estimators` gives them the contract of scikit-learn.
"""
