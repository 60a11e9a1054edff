"""The analyst: a release and a public target become a counterfactual. Nothing here may see a donor."""
