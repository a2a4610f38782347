"""The model while it learns: its run and its classes, the commits that it makes and applies, two copies that are swapped.

In come rows with labels, or a commit; out go weights to predict with, and a commit that brings an equal model to the same
state, bit for bit. Nothing here knows of requests, queues or disks.
"""
