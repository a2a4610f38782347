"""Taggers on shards: iterative parameter mixing of a `SequencePerceptron`.

A tagger and shards come in, files of CoNLL or pairs (X, y); a fitted `Model` goes out. `work` is what a worker does with a
shard, `fitting` the driver's plan.
"""
