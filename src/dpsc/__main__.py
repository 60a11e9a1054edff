"""``python -m dpsc``."""

from dpsc.cli import run

run()
