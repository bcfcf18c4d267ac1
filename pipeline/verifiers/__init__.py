"""Verifiers, programs that prove or refute a step of a chain, or part of it."""
