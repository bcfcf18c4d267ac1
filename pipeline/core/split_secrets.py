r"""A secret that a text holds in pieces: with white space, or characters beyond ASCII, between its own. Pure.

A stranger who sends a text may split a secret in this way, so that it is not found as it is, while people read it, or copy it
and take out the rest. Secrets are ASCII without white space, so what lies between is never a part of them.
"""

import re

BETWEEN = r"[^\x21-\x7e]"
_BETWEEN_BYTES = rb"[^\x21-\x7e]"
_ESCAPED = rb"(?:[nrtbf]|u(?!00[2-7])[0-9a-fA-F]{4}|u00(?:20|7[fF]))"
r"""What follows the backslash where JSON escapes such a character: n, u200b, ud83d and ude00."""


def split(secret: str) -> re.Pattern[str]:
    """A pattern for a secret with any number of characters between its own."""
    # Lazy, because a secret that is none, such as a short password, may hold these characters too.
    return re.compile(f"{BETWEEN}*?".join(map(re.escape, secret)))


def between_in_json(backslashes: bytes) -> bytes:
    """A pattern for the characters between, as UTF-8 or as escapes of JSON. `backslashes`: a pattern for the escape's."""
    # Lazy, because a secret may hold a backslash.
    return b"(?:%s|%s%s)*?" % (_BETWEEN_BYTES, backslashes, _ESCAPED)
