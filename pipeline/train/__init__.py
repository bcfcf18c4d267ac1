"""Trains a process reward model on the labels of a run, and scores chains with it. Only this package imports torch."""
