"""The Gram release: one private matrix, and everything that is computed from it."""
