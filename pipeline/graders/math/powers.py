r"""Separates powers that LaTeX prints as a product: 2^33^2 is 2^{3}3^{2}, as an exponent without braces is one digit. Pure.

2^10 is what people type for 2^{10}, so the exponent of a last or only power keeps its digits, and a run that ends in such a
power has two meanings: 2^33^25. It stays as it is, and so do 2^10^2 and 2**33**2. Nothing reads these.
"""

import re

MAX_RUN = 24

_RUN = re.compile(
    rf"[\w)}}\]](?:\^\d[1-9]\d{{0,40}}(?=\^)){{1,{MAX_RUN}}}\^(?:\{{|[0-9A-Za-z](?!\d|\s{{0,2}}\^))", re.ASCII
)
_EXPONENT = re.compile(r"\^(\d)([1-9]\d*)(?=\^)")


def separate(text: str) -> str:
    """The text with braces around the first digit of each exponent that LaTeX would raise alone. Takes linear time."""
    if "^" not in text or "**" in text:
        return text
    return _RUN.sub(lambda run: _EXPONENT.sub(r"^{\1}\2", run.group()), text)
