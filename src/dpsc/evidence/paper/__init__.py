"""The paper's experiments, run again: its data, its figures, its claims, under three recipes for the noise."""
