"""The subset of a data set that a row belongs to, by the row's id."""

import re
from collections.abc import Iterable

MAX_SUBSETS = 12
"""With more distinct id prefixes than this, ids do not define subsets."""
_SUBSET = re.compile(r"(.*\D)[-_/:]\d+")


def subset_names(ids: Iterable[str | None]) -> list[str | None]:
    """The part before the number of each id, such as `gsm8k` in `gsm8k-40`; None for an id of another form. None for all with
    more than MAX_SUBSETS distinct parts."""
    shapes = [_SUBSET.fullmatch(each or "") for each in ids]
    names = [shape[1] if shape else None for shape in shapes]
    return names if len(set(names)) <= MAX_SUBSETS else [None] * len(names)
