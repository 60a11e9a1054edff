"""Answers and how people see them: results, words, figures, reports. Never sees a donor."""
