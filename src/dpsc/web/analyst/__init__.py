"""The analyst's page. Never imports what reads donors."""
