"""The custodian: donors in, a release out. Everything that may see a donor is in here."""
