"""Answers and how they are shown: results, words, figures, reports. Never sees a donor."""
