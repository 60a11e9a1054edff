"""People in groups: private tables of units and periods, from records of the people inside."""
