"""What runs of `search` show: trees of problems, accuracy for tokens, and accuracy by coverage."""
