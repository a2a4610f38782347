"""`separatrix serve`: a linear model behind HTTP that predicts and learns from corrections.

Examples come in as JSON (features, texts or table rows); predictions, explanations, statistics and model files go out. One
writer thread learns and commits to SQLite before it acknowledges (`writer`, `store`, `commits`); predictions read the other
copy of a double buffer. After a restart the state is rebuilt bit for bit from a snapshot and the commits after it.
"""
