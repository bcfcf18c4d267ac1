"""Cells of the tables that `select` prints."""

from rich.text import Text

from pipeline.core.statistics import Interval


def cell(estimate: Interval, sign: str = "") -> Text:
    """A figure with its interval below it; a dash where it has no value. `sign`: `+` for a difference."""
    if estimate.value is None:
        return Text("-")
    value = rounded(estimate.value, 3, sign)
    if estimate.low is None or estimate.high is None:
        return Text(value)
    return Text(f"{value}\n{rounded(estimate.low, 2, sign)} {rounded(estimate.high, 2, sign)}")


def rounded(value: float, digits: int, sign: str = "") -> str:
    """A value that rounds to 0 has no sign."""
    return f"{value:{sign if round(value, digits) else ''}z.{digits}f}"
