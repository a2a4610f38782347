"""`train`: from data, in files or in memory, to a model, the same in Python and on the command line.

The options of a training come in with data of any kind; a `Model` with its summary goes out, and its file where one is asked
for. What is printed, progress bars and signals are those of `cli/`.
"""
