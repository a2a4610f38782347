"""Analyses of data and fitted models: bounds, traces, explanations, comparisons, likely label errors.

Data, fitted classifiers, ledgers and certificates come in; small objects that print themselves and convert to JSON go out.
Each analysis is a module of its own: `bounds`, `tracing`, `explaining`, `fewest_mistakes`, `mislabelled`,
`cross_validation`.
"""
