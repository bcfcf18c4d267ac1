"""The labels of the parts of an answer: a, b, c or i, ii, iii or 1, 2, 3. Pure."""

from collections.abc import Sequence

_ALPHABETS = (tuple("abcdefgh"), ("i", "ii", "iii", "iv", "v", "vi"), tuple("12345678"))


def are_consecutive(labels: Sequence[str]) -> bool:
    """Whether labels are the first ones of an alphabet, in order."""
    return any(tuple(labels) == alphabet[: len(labels)] for alphabet in _ALPHABETS)
