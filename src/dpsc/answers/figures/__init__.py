"""Figures, one idea per file; :mod:`dpsc.answers.plot` is their front."""
