"""Donors from frames, arrays and files, as rows of numbers. Knows nothing about noise."""
