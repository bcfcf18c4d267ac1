"""The first sentence of a text, for help, completion and code maps."""

import re

_SENTENCE = re.compile(r".*?(?<! al)(?<!e\.g)[.;](?=\s|$)|.+")
"""A semicolon ends a sentence too. The dots of `et al.` and `e.g.` end none."""


def first_sentence(text: str) -> str:
    """The first sentence of a text in one line, with the stop that it has, or else a full stop. Empty for an empty text."""
    found = _SENTENCE.match(" ".join(text.split()))
    sentence = found[0].rstrip(".;:") if found else ""
    return sentence + ("" if not sentence or sentence.endswith(("?", "!")) else ".")
