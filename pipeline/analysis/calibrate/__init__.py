"""The `calibrate` command: turns step scores into probabilities with fresh rollouts, and says how good they are."""
