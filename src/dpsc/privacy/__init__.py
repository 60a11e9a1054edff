"""What privacy costs, how far one donor can move a number, and the noise that hides it. Knows nothing of panels."""
