"""`separatrix serve`: a model behind HTTP that learns, with a store that loses nothing it has acknowledged."""
