"""One reader for each file format.

In come bytes or a path; out go batches that know their file and line. `data.sniffing` decides
which reader is used.
"""
