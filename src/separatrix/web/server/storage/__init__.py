"""The folder of a store: commits, pins and replies in SQLite, snapshots beside it, backups and repair.

In come commits and models; out comes the state after the last acknowledged commit, rebuilt bit for bit from a snapshot and
the commits after it, or one sentence about what is missing. One process writes a store: `store_folder` sees to that.
"""
