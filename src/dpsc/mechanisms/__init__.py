"""Noise and nothing else. Nothing here knows of panels, targets or results."""
