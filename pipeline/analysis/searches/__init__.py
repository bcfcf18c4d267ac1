"""What runs of `search` show: trees of problems, accuracy for tokens, coverage, and signs of reward hacking."""
