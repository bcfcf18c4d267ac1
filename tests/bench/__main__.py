"""`python -m tests.bench [control] [engine] [demo] [programs]`: the figures of the README, measured anew; all by default."""

import platform
import sys
from collections.abc import Callable

from tests.bench.control import control_plane
from tests.bench.demo import demo
from tests.bench.engine import engine_share
from tests.bench.programs import programs

PARTS: dict[str, Callable[[], None]] = {
    "control": control_plane,
    "engine": engine_share,
    "demo": demo,
    "programs": programs,
}


def main() -> int:
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        print(f"there is no bench {sorted(unknown)[0]}: choose from {', '.join(PARTS)}", file=sys.stderr)
        return 2
    print(f"{platform.machine()}, Python {platform.python_version()}")
    for part in chosen:
        PARTS[part]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
