"""Reading data: files, pipes and built-in names as streams of batches of bounded size.

In comes a path, a pattern, "-", a file object or a name such as `iris`; `sniffing` decides on the format, and
`reading.open_source` returns a `Source`. Out go batches of rows (X, y) or of columns (an Arrow table), each of which knows
its file and lines, so that every error names the place; `in_memory.read_source` joins them where all examples are needed at
once. `formats/` has one module a file format, and the table of them; `options`
declares the parameters of reading, for the command line and for Python.
"""
