"""The run directory: files, the rollout log, commit records, repair, and editions of labels."""
