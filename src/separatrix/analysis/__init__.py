"""What can be said about data and fitted models: bounds, traces, explanations, comparisons, likely label errors.

In come data, fitted classifiers, ledgers and certificates; out go small objects that print themselves and know their JSON.
"""
