"""The Gram release: one private matrix, and everything that is read from it."""
