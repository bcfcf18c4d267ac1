"""The `agree` command: the labels of a run against those of people."""
