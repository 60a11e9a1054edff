"""Donors and targets as tables and matrices, whatever form they come in. Knows nothing of noise."""
