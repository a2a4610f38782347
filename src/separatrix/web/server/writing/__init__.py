"""The one thread that changes the model: requests wait in a queue, and those that wait together become one commit.

In come requests to learn, to take back a mistake or a pin, and to maintain the store; out go their answers, once the commit
is on the disk. `admission` says what may be learned; `regressions` predicts the pinned examples again after each commit.
"""
