"""What a request holds: bodies within limits of time and memory, examples and vectors as rows, columns of named features.

In come bytes of JSON, one example or one per line; out go sparse rows with their labels, or a `RequestError` that says
what is wrong. Nothing here learns or stores.
"""
