"""The parts of text features: Arrow text, characters, n-grams, counts, vocabulary."""
