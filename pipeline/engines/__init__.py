"""Policies and the engines that sample their completions, and the highest speed that a device allows."""
