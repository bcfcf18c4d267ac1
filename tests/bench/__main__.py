"""`python -m tests.bench [--record] [PART ... | all]`: measures and prints figures; default: the parts about throughput. `all`
leaves out those of hours."""

import sys
from collections.abc import Callable

from tests.bench.consensus import consensus
from tests.bench.control import control_plane
from tests.bench.engine import engine_share
from tests.bench.grading import grading
from tests.bench.grow_bias import grow_bias
from tests.bench.harvest import harvest
from tests.bench.loop.parts import loop, loop_search
from tests.bench.loop.regenerate import regenerate
from tests.bench.real import real
from tests.bench.results import FLAG, printed
from tests.bench.scoring import scoring
from tests.bench.search import search
from tests.bench.straightforward.against import straightforward
from tests.bench.verify_arithmetic import verify_arithmetic
from tests.bench.verify_code import verify_code
from tests.bench.verify_coq import verify_coq
from tests.bench.verify_facts import verify_facts
from tests.bench.verify_hostile import verify_hostile
from tests.bench.verify_z3 import verify_z3

THROUGHPUT: dict[str, Callable[[], None]] = {
    "control": control_plane,
    "engine": engine_share,
    "straightforward": straightforward,
}
OTHERS: dict[str, Callable[[], None]] = {
    "grading": grading,
    "verify-arithmetic": verify_arithmetic,
    "verify-z3": verify_z3,
    "verify-coq": verify_coq,
    "verify-facts": verify_facts,
    "verify-hostile": verify_hostile,
    "verify-code": verify_code,
    "consensus": consensus,
    "regenerate": regenerate,
    "harvest": harvest,
    "real": real,
    "scoring": scoring,
}
LONG: dict[str, Callable[[], None]] = {
    "grow-bias": grow_bias,
    "loop": loop,
    "loop-search": loop_search,
    "search": search,
}
"""Parts of hours, which `all` leaves out."""
PARTS = THROUGHPUT | OTHERS | LONG


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != FLAG]
    chosen = list(THROUGHPUT | OTHERS) if arguments == ["all"] else arguments or list(THROUGHPUT)
    if unknown := set(chosen) - set(PARTS):
        print(f"there is no bench {sorted(unknown)[0]}: choose from all, {', '.join(PARTS)}", file=sys.stderr)
        return 2
    with printed(" ".join(["bench", *arguments]), record=FLAG in sys.argv):
        for part in chosen:
            PARTS[part]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
