"""Rollout trees: the steps that rollouts wrote after the prefixes of chains, joined to a tree, with counts and posteriors."""
