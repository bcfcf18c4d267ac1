"""Tests of the mathematics of consensus."""
