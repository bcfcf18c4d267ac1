"""The `calibrate` command: turns step scores into probabilities with rollouts of the policy in use, and says how good they are."""
