"""One file per private algorithm, each reading like its pseudo-code."""
