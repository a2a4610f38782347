"""`separatrix serve`: a linear model behind HTTP that predicts and learns from corrections.

Examples come in as JSON (features, texts or table rows); predictions, explanations, statistics and model files go out.
`reading` makes rows of the requests, one thread learns and commits to SQLite before it acknowledges (`writing`, `storage`),
and predictions read the other copy of a double buffer (`live`). After a restart the state is rebuilt bit for bit from a
snapshot and the commits after it. Here are the application and the requests that only read.
"""
