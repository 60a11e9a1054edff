"""Synthetic control by donor weights: the classic methods, and the paper's two private ones."""
