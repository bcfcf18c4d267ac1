"""What went wrong with one HTTP request, what that means, and how long to wait. Pure but for the exception that carries it."""

from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz
from enum import Enum, auto

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LONGEST_ASKED_PAUSE_SECONDS = 120.0
"""Of a server that says when to come back."""


class Kind(Enum):
    """What a failed request says of itself and of its server."""

    REFUSED = auto()
    """The server does not want this request, and serves others."""
    BUSY = auto()
    """The server wants nothing more now."""
    FAULT = auto()
    """This try failed; whose fault it is, is not known."""
    DROPPED = auto()
    """This try failed with its connection: so may its server."""
    GONE = auto()
    """The server does not serve any more; the request has nothing to do with it."""


class Trouble(Exception):
    """Why a request has no answer, in words that hold no key. `wait`: seconds that the server asked for."""

    def __init__(self, kind: Kind, told: str, *, status: int = 0, wait: float | None = None) -> None:
        super().__init__(told)
        self.kind = kind
        self.status = status
        self.wait = wait


_KINDS = {
    **dict.fromkeys((400, 413, 414, 422), Kind.REFUSED),
    **dict.fromkeys((429, 503), Kind.BUSY),
    # A route, a key or a model that was there at the start; or a proxy that has lost its server.
    **dict.fromkeys((301, 302, 303, 307, 308, 401, 403, 404, 405, 502), Kind.GONE),
}


def kind_of(status: int) -> Kind:
    """What a status other than 200 means."""
    return _KINDS.get(status, Kind.FAULT)


def asked_pause(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `Retry-After` asks for, as a number or as a date; `now` is the Unix time. None where it does not say."""
    asked = headers.get("Retry-After", "").strip()
    try:
        date = parsedate_tz(asked)
        seconds = mktime_tz(date) - now if date else float(asked)
    except (ValueError, OverflowError):
        return None
    # A comparison with something that is no number is false.
    return min(seconds, LONGEST_ASKED_PAUSE_SECONDS) if seconds >= 0 else None


def pause(failures: int, draw: float) -> float:
    """Seconds until the next try after so many failures in a row: doubling, and anything from half to all of that.

    `draw` is uniform in [0, 1): requests that failed together do not come back together.
    """
    longest = FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 32)
    return min(longest, LONGEST_PAUSE_SECONDS) * (0.5 + 0.5 * draw)
