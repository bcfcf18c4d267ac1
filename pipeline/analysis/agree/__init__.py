"""The `agree` command: compares the labels of a run with human labels of the same chains."""
