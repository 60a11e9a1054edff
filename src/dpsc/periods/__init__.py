"""Periods: what people write for one, a calendar of them, declared ones, and how a series fits them."""
