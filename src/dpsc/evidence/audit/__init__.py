"""Attacks on our own mechanisms: how much privacy loss can be demonstrated, next to what is claimed."""
