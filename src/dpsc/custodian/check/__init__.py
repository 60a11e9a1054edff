"""What a custodian should know about a table before a release. Private: for the custodian only."""
