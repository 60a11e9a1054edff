"""The consoles: a page in the browser for the analyst, another for the custodian. Two programs, never one process."""
