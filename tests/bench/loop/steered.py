"""The third lap of the loop: the PRM of the first one steers the policy.

Two searches and their comparison are commands, with vLLM for policy and scorer. All methods at all sizes would start vLLM
dozens of times, so they run in the loop's own process (see `searching`).
"""

from collections.abc import Iterator

import torch

from tests.bench.loop.commands import Stage, searched
from tests.bench.loop.plan import SEED, STEP, Files
from tests.bench.loop.search_grid import searched_lines
from tests.bench.loop.searching import Searches
from tests.tiny.policy import TinyPolicy

N = 16
COMPARED = ("best_of_n", "beam")


def steered_stages(files: Files, policy: TinyPolicy) -> list[Stage]:
    """Search the test problems of the first lap, and compare."""
    runs = [files.search_run(method) for method in COMPARED]
    return [
        *(
            Stage(
                name=f"search: {method}",
                command=searched(policy, files.model(STEP), files.test_problems, run, method, N, "scorer.engine=vllm"),
            )
            for method, run in zip(COMPARED, runs, strict=True)
        ),
        Stage(
            name="compare the searches",
            command=("select", f"searches=[{','.join(map(str, runs))}]", f"out={files.compared_searches}"),
            shown_again=True,
        ),
    ]


def steered(files: Files) -> Iterator[str]:
    """Lines about all methods. Those that are done are not run again."""
    torch.set_num_threads(1)
    searches = Searches(files.searches, files.model(STEP), files.test_problems, SEED)
    yield from searched_lines([searches], lambda line: print(line, flush=True))
