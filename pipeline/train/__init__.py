"""A process reward model trained on a run's labels, and what it says of chains. Torch is imported here only."""
