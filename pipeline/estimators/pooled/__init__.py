"""The pooled estimator: it uses the rollouts of all steps of a chain for the value of each."""
