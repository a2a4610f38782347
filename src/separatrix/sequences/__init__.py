"""Sequences of tokens with a tag each: the structured perceptron, its input, its ledger, and what is told of it.

Lists of tokens (attributes, strings or numbers) or CoNLL files come in; a `SequencePerceptron`, tags, entities, bounds,
explanations and traces go out. Nothing here needs scikit-learn.
"""
