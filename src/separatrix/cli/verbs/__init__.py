"""The verbs, one file each.

What a verb needs to run is imported in its function, so that its help text and shell completion need none of it.
"""
