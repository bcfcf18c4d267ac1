"""The pooled estimator: what the steps of a chain tell about each other."""
