"""The verifier of facts: a table of 10^6 rows (time and memory for its index, to open it, for a look-up), and planted claims.

Each measurement of memory and of opening is of a process of its own."""

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from pipeline.data.facts.index import index_of
from pipeline.data.facts.table import Table
from pipeline.verifiers.base import StepVerdict
from tests.bench.verdicts import print_bars, quantile, spent
from tests.verifiers.facts.tables import Row, facts, made_up_rows, planted_claims, said, write_parquet
from tests.verifiers.facts.templates import DEVELOPMENT, HELD_OUT, LOOK_ALIKES

ROWS = 1_000_000
LOOK_UPS = 20_000
PLANTED = 10_000
SEED = 20_261_126
MOST_MS = 1.0
SETTING = "verifier.table"
_ATTRIBUTES = [
    "capital",
    "population",
    "founder",
    "mayor",
    "area",
    "elevation",
    "river",
    "language",
    "currency",
    "year",
]


def verify_facts() -> None:
    marks: list[tuple[bool, str]] = []
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        path = write_parquet(Path(folder) / "facts.parquet", _large_table())
        print(f"\nverify-facts: a Parquet table of {ROWS:,} rows, {path.stat().st_size / 2**20:.0f} MiB")
        print(f"  index made: {_in_a_process('make', path)}")
        print(f"  opened, one look-up: {_in_a_process('open', path)}")
        marks.append(_look_ups(path))
        print(f"  index: {index_of(str(path), SETTING).stat().st_size / 2**20:.0f} MiB on disk")
        index_of(str(path), SETTING).unlink()
        rows = made_up_rows(300, SEED)
        small = write_parquet(Path(folder) / "small.parquet", rows)
        for name, templates in (("development", DEVELOPMENT), ("held-out", HELD_OUT), ("look-alike", LOOK_ALIKES)):
            wrong = _planted(name, small, rows, templates)
            marks.append((not wrong, f"{name} claims judged wrongly: {wrong} of {2 * PLANTED:,} (asked: 0)"))
        index_of(str(small), SETTING).unlink()
    print_bars(*marks)


def _large_table() -> list[Row]:
    drawn = random.Random(SEED)
    return [
        {
            "entity": f"Town {number // 10:06d}",
            "attribute": _ATTRIBUTES[number % 10],
            "value": f"{drawn.randrange(10**6):,}" if number % 3 else f"Name {drawn.randrange(10**5)} of Place",
            "aliases": [f"T. {number // 10}"] if number % 10 == 0 else None,
        }
        for number in range(ROWS)
    ]


def _look_ups(path: Path) -> tuple[bool, str]:
    """Names to an entry, as the verifier asks: names are drawn, so that few pages of the index are asked for twice."""
    table = Table(str(path), SETTING)
    drawn = random.Random(SEED)
    times, found = [], 0
    for _ in range(LOOK_UPS):
        town = drawn.randrange(ROWS // 10)
        name = f"The Town {town:06d}" if drawn.random() < 0.5 else f"T. {town}"
        attribute = drawn.choice(_ATTRIBUTES)
        began = time.perf_counter_ns()
        (entity,), (known,) = table.entities(name), table.attributes(attribute)
        entry = table.entry(entity, known)
        times.append((time.perf_counter_ns() - began) / 1e6)
        found += entry is not None
    table.close()
    assert found == LOOK_UPS
    measured = f"mean {mean(times):.3f} ms, p99 {quantile(times, 0.99):.3f} ms, slowest {max(times):.1f} ms"
    return mean(times) <= MOST_MS, f"look-up: {measured} (asked: mean at most {MOST_MS:g} ms)"


def _planted(name: str, path: Path, rows: Sequence[Row], templates: Sequence[str]) -> int:
    """Prints what is said of planted claims. Returns the number of wrong verdicts."""
    verifier = facts(path)
    right: Counter[StepVerdict] = Counter()
    wrong: Counter[StepVerdict] = Counter()
    times = []
    for claim in planted_claims(rows, templates, PLANTED, SEED):
        began = time.process_time_ns()
        right[said(verifier, claim.right).verdict] += 1
        wrong[said(verifier, claim.wrong).verdict] += 1
        times.append((time.process_time_ns() - began) / 2e6)
    print(f"\nverify-facts: {PLANTED:,} right and {PLANTED:,} wrong claims, {len(templates)} {name} templates")
    for kind, counts in (("right", right), ("wrong", wrong)):
        print(f"  {kind}: " + ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in StepVerdict))
    print(f"  a step: {spent(times)} of a processor")
    return right[StepVerdict.REFUTED] + wrong[StepVerdict.HOLDS]


def _in_a_process(task: str, path: Path) -> str:
    command = [sys.executable, "-m", "tests.bench.verify_facts", task, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _most_memory() -> float:
    """The most memory that this program has had, in MiB. `ru_maxrss` also counts what its parent had."""
    (line,) = (line for line in Path("/proc/self/status").read_text("ascii").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def _main(task: str, path: str) -> None:
    before = _most_memory()
    began, worked = time.perf_counter(), time.process_time()
    table = Table(path, SETTING)
    if task == "open":
        table.entry("town 000017", "capital")
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    more = _most_memory() - before
    spent = f"{seconds:.1f} s ({processor:.1f} s of a processor)" if seconds > 1 else f"{1000 * seconds:.1f} ms"
    print(f"{spent}, {more:.0f} MiB more memory at most")


if __name__ == "__main__":
    _main(*sys.argv[1:])
