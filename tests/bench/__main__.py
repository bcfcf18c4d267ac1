"""`python -m tests.bench [--record] [PART ... | all]`: measures and prints figures; default: the parts about throughput. `all`
leaves out those of hours."""

import sys
from collections.abc import Callable

from tests.bench.agree import agree
from tests.bench.calibrate import calibrate
from tests.bench.compare import compare
from tests.bench.consensus import consensus
from tests.bench.control import control_plane
from tests.bench.demo import demo
from tests.bench.engine import engine_share
from tests.bench.export import export
from tests.bench.frontend import frontend
from tests.bench.grading import grading
from tests.bench.grow_bias import grow_bias
from tests.bench.grow_errors import grow_errors
from tests.bench.grow_idle import grow_idle
from tests.bench.grow_pairs import grow_pairs
from tests.bench.growth import growth
from tests.bench.harvest import harvest
from tests.bench.harvest_scale import harvest_scale
from tests.bench.live import live
from tests.bench.loop import loop
from tests.bench.loop_grow import loop_grow
from tests.bench.loop_search import loop_search
from tests.bench.notebook import notebook
from tests.bench.page import page
from tests.bench.plan import plan
from tests.bench.programs import programs
from tests.bench.real import real
from tests.bench.regenerate import regenerate
from tests.bench.report import report
from tests.bench.results import FLAG, printed
from tests.bench.score_run import score_run_bench
from tests.bench.scoring import scoring
from tests.bench.search import search
from tests.bench.search_cpu import search_cpu
from tests.bench.search_idle import search_idle
from tests.bench.search_prefix import search_prefix
from tests.bench.search_runtime import search_runtime
from tests.bench.store import store
from tests.bench.straightforward.against import straightforward
from tests.bench.sweep import sweep
from tests.bench.tiny import tiny
from tests.bench.verify_arithmetic import verify_arithmetic
from tests.bench.verify_code import verify_code
from tests.bench.verify_coq import verify_coq
from tests.bench.verify_facts import verify_facts
from tests.bench.verify_hostile import verify_hostile
from tests.bench.verify_types import verify_types
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
    "verify-types": verify_types,
    "programs": programs,
    "store": store,
    "growth": growth,
    "export": export,
    "live": live,
    "plan": plan,
    "report": report,
    "page": page,
    "compare": compare,
    "agree": agree,
    "score-run": score_run_bench,
    "calibrate": calibrate,
    "consensus": consensus,
    "search-cpu": search_cpu,
    "search-runtime": search_runtime,
    "search-prefix": search_prefix,
    "regenerate": regenerate,
    "harvest": harvest,
    "harvest-scale": harvest_scale,
    "grow-errors": grow_errors,
    "grow-pairs": grow_pairs,
    "grow-idle": grow_idle,
    "sweep": sweep,
    "tiny": tiny,
    "real": real,
    "frontend": frontend,
    "scoring": scoring,
    "demo": demo,
    "notebook": notebook,
}
LONG: dict[str, Callable[[], None]] = {
    "grow-bias": grow_bias,
    "loop": loop,
    "loop-search": loop_search,
    "loop-grow": loop_grow,
    "search": search,
    "search-idle": search_idle,
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
