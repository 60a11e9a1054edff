"""The Gram release: donors become exact sums, and sums with noise become a release."""
