"""Which prefix gets rollouts next, and values and labels from the rollouts."""
