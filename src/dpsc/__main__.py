"""``python -m dpsc``."""

from dpsc.cli import app

app(prog_name="dpsc")
