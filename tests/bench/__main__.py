"""`python -m tests.bench [PART ...]`: the figures of the README, measured anew; default: all parts."""

import platform
import sys
from collections.abc import Callable

from tests.bench.control import control_plane
from tests.bench.demo import demo
from tests.bench.engine import engine_share
from tests.bench.grading import grading
from tests.bench.programs import programs
from tests.bench.store import store
from tests.bench.tiny import tiny

PARTS: dict[str, Callable[[], None]] = {
    "grading": grading,
    "programs": programs,
    "control": control_plane,
    "engine": engine_share,
    "store": store,
    "tiny": tiny,
    "demo": demo,
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
