"""Donors and targets as tables and matrices, from frames, arrays and files. Knows nothing about noise."""
