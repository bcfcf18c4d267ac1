"""Searches: how a policy's steps are sampled and scored until one chain of a problem is chosen."""
