"""The closed loop: sample, label, train, score and select, as a user would, on the tiny policy."""
