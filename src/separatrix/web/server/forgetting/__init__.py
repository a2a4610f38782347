"""Forgetting on the server: a store becomes the one that the same requests without some examples would have given.

In come a store that has kept all examples from the first of these on, and their numbers; the later commits are replayed
without them and written anew in one transaction (`replaying`, `act`), and what the folder still has of them is erased
(`erasing`). Out comes a receipt, which `checking` verifies by learning, and by which `restore` forgets them again (`again`).
"""
