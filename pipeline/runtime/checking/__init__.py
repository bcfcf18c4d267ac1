"""Checking steps by programs: a verifier is asked about each step of each chain, in child processes with limits."""
