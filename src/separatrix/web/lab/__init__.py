"""The lab: a recipe comes in, a document with every step of a run goes out, and a page shows it."""
