"""Witnesses: what else than Monte Carlo says where the first error of a chain is: judges, process reward models, programs."""
