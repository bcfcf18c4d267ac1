"""How far `report run_dir=[a,b]` can be trusted: runs of the same truth, in which nothing has changed, and of a truth that has.

The oracle's truth is kept and its rollouts are drawn again, so that two runs of one seed differ by chance alone; or every value
is lowered by `SHIFT`, as far as 0 lets it be.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np

from pipeline.__main__ import compose_label
from pipeline.analysis.compare.comparison import Comparison
from pipeline.analysis.compare.frames import COLUMNS, common, frames
from pipeline.analysis.compare.run import compare_runs as compare_runs
from pipeline.core.records import Problem
from pipeline.core.statistics import Floats
from pipeline.engines import oracle, oracle_tree
from pipeline.storage.location import storage_at
from pipeline.storage.stored_labels import label_frames
from tests.runtime.in_process import label_in_process

SEEDS = 100
PROBLEMS = 60
CHAINS = 2
SHIFT = 0.05
_ROLLOUT = re.compile(r"-\d{5}$")


def compare() -> None:
    print(f"\ncompare: {SEEDS} seeds, {PROBLEMS} problems with {CHAINS} chains each")
    pairs: dict[str, list[Comparison]] = {}
    truths: list[float] = []
    for seed in range(SEEDS):
        with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
            folder = Path(name)
            _write(folder / "rows.jsonl", PROBLEMS, CHAINS)
            runs = {
                "fixed": _labelled(folder, "a", seed, "fixed"),
                "fixed again": _labelled(folder, "b", seed, "fixed", salt=1),
                "pooled": _labelled(folder, "c", seed, "pooled", salt=2),
                "pooled again": _labelled(folder, "d", seed, "pooled", salt=3),
                "first_success": _labelled(folder, "e", seed, "first_success", salt=4),
            }
            lowered = _labelled(folder, "f", seed, "fixed", salt=5, lower=SHIFT)
            for a, b in (
                ("fixed", "fixed again"),
                ("fixed", "pooled"),
                ("pooled", "pooled again"),
                ("fixed", "first_success"),
            ):
                pairs.setdefault(f"{a} and {b}", []).append(compare_runs((runs[a], runs[b])))
            pairs.setdefault("fixed and lowered", []).append(compare_runs((runs["fixed"], lowered)))
            truths.append(_true_shift(runs["fixed"], lowered, seed))
    for name, found in pairs.items():
        _report(name, found, np.array(truths) if name.endswith("lowered") else np.zeros(SEEDS))


def _report(name: str, found: list[Comparison], truths: Floats) -> None:
    shifts = [each.shift.shift for each in found]
    values, lows, highs = (_floats([getattr(each, end) for each in shifts]) for end in ("value", "low", "high"))
    held = (lows <= truths) & (truths <= highs)
    shown = np.mean([each.has_value for each in shifts])
    print(
        f"  {name:<28}shift {values.mean():+.4f} (true {truths.mean():+.4f}) +-{np.mean(highs - lows) / 2:.4f}, "
        f"reported in {shown:.0%}; the interval holds the truth in {held.mean():.0%}",
        flush=True,
    )


def _floats(numbers: Sequence[float | None]) -> Floats:
    return np.array([np.nan if number is None else number for number in numbers])


def _true_shift(a: str, b: str, seed: int) -> float:
    """Mean of what the values were lowered by, over common prefixes."""
    sides = [frames(label_frames(storage_at(run), COLUMNS)) for run in (a, b)]
    assert sides[0] is not None
    assert sides[1] is not None
    rows = common(sides[0], sides[1]).prefixes.select("problem_id", "prefix_id").iter_rows()
    values = [oracle.true_value(seed, 0.35, Problem(problem_id=p, text="", golds=()), prefix) for p, prefix in rows]
    return float(np.mean([max(0.0, value - SHIFT) - value for value in values]))


def _labelled(folder: Path, name: str, seed: int, estimator: str, *, salt: int = 0, lower: float = 0.0) -> str:
    run_dir = str(folder / name)
    settings = ["policy=oracle", f"policy.oracle.seed={seed}", f"estimator={estimator}", "run.show_chains=0"]
    with _oracle(salt, lower):
        label_in_process(compose_label([f"data.path={folder / 'rows.jsonl'}", f"run_dir={run_dir}", *settings]))
    return run_dir


@contextmanager
def _oracle(salt: int, lower: float) -> Iterator[None]:
    """Rollouts that are drawn again, of values that are lower."""
    draw: Callable[[str], int] = oracle_tree.draw
    truth = oracle.true_value

    def drawn(key: str) -> int:
        return draw(f"{salt}:{key}" if _ROLLOUT.search(key) else key)

    def lowered(seed: int, spread: float, problem: Problem, prefix_id: str) -> float:
        return max(0.0, truth(seed, spread, problem, prefix_id) - lower)

    with patch.object(oracle, "_draw", drawn), patch.object(oracle, "true_value", lowered):
        yield


def _write(path: Path, problems: int, chains: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for n in range(problems):
            for chain in range(chains):
                answer = 2 * n + 1 + 2 * (chain % 2)
                ways = [f"Way {chain}, step {step}: nothing is added." for step in range(2)]
                steps = [f"{n} + {n} = {2 * n}.", *ways, f"{2 * n} + 1 = {answer}.", f"The answer is {answer}."]
                row = {"problem": f"What is {n} + {n} + 1?", "answer": str(2 * n + 1), "steps": steps}
                file.write(json.dumps(row) + "\n")
