"""Trains a process reward model on the labels of a run."""
