"""Numbers as the texts of a document. A dash stands for a value that is not there. Pure."""

from pipeline.core.formatting import format_percent
from pipeline.core.statistics import Interval
from pipeline.display.document import Figure

NONE = "-"


def number(value: float | None, digits: int = 2, sign: str = "") -> str:
    """A value with this number of decimals. `sign`: `+` for a difference; what rounds to 0 has none."""
    return NONE if value is None else f"{value:{sign if round(value, digits) else ''}z.{digits}f}"


def reach(figure: Interval, digits: int = 2, sign: str = "") -> str:
    """The interval alone, such as `0.44-0.60`, or `-0.10 to 0.30` where it may begin below 0; empty without one."""
    if figure.low is None or figure.high is None:
        return ""
    between = " to " if sign or figure.low < 0 else "-"
    return f"{number(figure.low, digits, sign)}{between}{number(figure.high, digits, sign)}"


def interval(figure: Interval, digits: int = 2, sign: str = "") -> str:
    """A value with its interval, such as `0.52 (0.44-0.60)` or `+0.1 (-0.1 to +0.3)`."""
    around = reach(figure, digits, sign)
    return number(figure.value, digits, sign) + (f" ({around})" if around else "")


def below(figure: Interval, sign: str = "") -> str:
    """A value with three decimals, and its interval in a line below it."""
    around = "" if figure.low is None else f"\n{number(figure.low, 2, sign)} {number(figure.high, 2, sign)}"
    return number(figure.value, 3, sign) + around


def percent(share: float | None) -> str:
    return NONE if share is None else format_percent(share)


def percents(figure: Interval) -> str:
    """A share in percent with its interval, such as `52 % (44-60)`."""
    around = "" if figure.low is None or figure.high is None else f" ({100 * figure.low:.0f}-{100 * figure.high:.0f})"
    return percent(figure.value) + around


def count(amount: float) -> str:
    """A count; an expected value that is not whole has one decimal."""
    return f"{amount:,.0f}" if abs(amount - round(amount)) < 1e-9 else f"{amount:,.1f}"


def key_figure(name: str, figure: Interval, reading: str | None = None) -> Figure:
    """A key figure with three decimals. `reading`: instead of its interval."""
    return Figure(
        name=name,
        value=number(figure.value, 3),
        reading=reach(figure, 3) if reading is None else reading,
    )
