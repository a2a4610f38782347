"""Readers: any file, pipe or built-in name as batches of bounded size; `reading.open_source` opens them all."""
