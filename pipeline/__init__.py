"""stepvalue: Monte Carlo step values for process reward models."""

__version__ = "0.1.0"
