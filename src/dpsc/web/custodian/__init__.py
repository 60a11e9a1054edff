"""The custodian's page. It runs on the machine that holds the donors."""
