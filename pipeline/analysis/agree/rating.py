"""What people or labels say of the steps of a chain: good, bad (False) or unknown (None); and where its first error is."""

from collections.abc import Sequence

NO_ERROR = -1


def first_error(goods: Sequence[bool | None]) -> int | None:
    """The first bad step, counted from 0, or NO_ERROR. None where an unknown step comes before any bad one."""
    for index, good in enumerate(goods):
        if not good:
            return None if good is None else index
    return NO_ERROR


def goods_until(error: int, n_steps: int) -> tuple[bool | None, ...]:
    """What a first error, or NO_ERROR, says of each of `n_steps`: those before it are good, and what is behind is unknown."""
    if error == NO_ERROR:
        return (True,) * n_steps
    return (*[True] * error, False, *[None] * (n_steps - error - 1))
