"""Tables on disk: what they are, how they are written, and how they are read. Knows no donor and no noise."""
