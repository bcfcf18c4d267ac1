"""Joins what Monte Carlo and other witnesses say of the first error of a chain, and how much each of them is worth."""
