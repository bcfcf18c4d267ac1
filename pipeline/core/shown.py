"""Results that Python users look at in a shell or below the cell of a notebook: a few lines instead of every field."""

from collections.abc import Iterable
from html import escape
from itertools import islice

from pipeline.core.formatting import plain_lines

MOST_LINES = 40
"""Of more lines than that, the first ones are shown, and the last says so."""


class Shown:
    """Base of a result that is shown as `_shown_lines`. Names and texts in these may hold anything: control characters are
    replaced, and HTML is escaped."""

    __slots__ = ()

    def _shown_lines(self) -> Iterable[str]:
        """What a user needs to know, the most important first."""
        raise NotImplementedError

    def __repr__(self) -> str:
        first = list(islice(self._shown_lines(), MOST_LINES + 1))
        more = ["..."] if len(first) > MOST_LINES else []
        return "\n".join([*map(plain_lines, first[:MOST_LINES]), *more])

    def _repr_html_(self) -> str:
        return f'<pre style="white-space:pre-wrap">{escape(repr(self))}</pre>'
