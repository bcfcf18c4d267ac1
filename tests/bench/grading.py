"""The answer checker: accuracy beside math-verify's, what a verdict costs, and what hostile answers do to it."""

import tempfile
from collections.abc import Sequence
from contextlib import chdir
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import mean

from pipeline.core.records import Verdict
from pipeline.graders.registry import checker_for
from tests.bench import math_verify
from tests.bench.grading_hostile import hostile_flood
from tests.bench.grading_time import FILE, REPETITIONS, Times, decisions, repetitions
from tests.bench.verdicts import print_bars, quantile
from tests.graders.dev_files import FOLDER, REQUIRED, Outcome, Score, canaries, cases_of, judge, meets, score
from tests.graders.flood import Wake
from tests.settings import grader_settings

LEAST_QUICK_PERCENT = 75.0
MOST_MEAN_US = 50.0
MOST_SLOW_P99_MS = 100.0
# A process that is still growing at the end of a flood has grown by more than this in its second half.
MOST_GROWTH_MIB = 20.0


fresh = partial(tempfile.TemporaryDirectory, prefix="stepvalue-bench-")
Mark = tuple[bool, str]
"""Whether a figure is as wanted, and the figure."""


def grading() -> None:
    marks: list[Mark] = []
    if FOLDER.exists():
        marks += _accuracy()
        marks += _time(repetitions())
    else:
        print(f"\ngrading: the audited answers are not there ({FOLDER}): no accuracy and no times")
    marks += _hostile(hostile_flood())
    print_bars(*marks)


def _accuracy() -> list[Mark]:
    print(f"\ngrading: audited answers, settings at their defaults, beside math-verify {version('math-verify')}")
    print("  golds and bare answers are given to math-verify in $...$; times per case hold all work, extraction too")
    print(
        f"  {'file':<13}{'checker':<13}{'cases':>6}{'right %':>9}{'bar':>7}{'false +':>9}{'false -':>9}"
        f"{'late':>5}{'files':>6}{'mean ms':>9}{'p50':>7}{'p99':>8}{'max':>9}  ungraded"
    )
    marks = []
    for name, bar in REQUIRED.items():
        cases = cases_of(name)
        with fresh() as folder, chdir(folder), checker_for(grader_settings()) as checker:
            checker.grade_answer(("1",), "\\sin^2 x+\\cos^2 x")
            ours = [judge(checker, case) for case in cases]
            left = len(canaries(cases, Path(folder)))
        result = score(ours)
        _row(name, "stepvalue", result, ours, left, f"{bar.accuracy:g}")
        with fresh() as folder:
            theirs = math_verify.judge_all(cases, Path(folder))
            _row(name, "math-verify", score(theirs), theirs, len(canaries(cases, Path(folder))), "")
        asked = f"{name} at least {bar.accuracy:g} % right"
        measured = f"{result.accuracy:.2f} %"
        if bar.false_positives < 100:
            asked += f", false positives at most {bar.false_positives:g} %"
            measured += f", {result.false_positive_percent:.2f} %"
        marks.append((meets(result, bar), f"{asked}: {measured}"))
        if any(case.max_seconds for case in cases):
            met = not result.late and not left
            marks.append((met, f"{name}: nothing late, nothing executed: {result.late} late, {left} files"))
    return marks


def _row(name: str, checker: str, result: Score, outcomes: Sequence[Outcome], left: int, bar: str) -> None:
    spent = [outcome.seconds * 1000 for outcome in outcomes]
    lost = {kind: sum(outcome.verdict == kind for outcome in outcomes) for kind in (math_verify.HANG, math_verify.DIED)}
    ungraded = ", ".join(f"{count} {kind}" for kind, count in (result.ungraded | lost).items() if count)
    print(
        f"  {name:<13}{checker:<13}{result.cases:>6}{result.accuracy:>9.2f}{bar:>7}"
        f"{result.false_positives:>9}{result.false_negatives:>9}{result.late:>5}{left:>6}"
        f"{mean(spent):>9.2f}{quantile(spent, 0.5):>7.2f}{quantile(spent, 0.99):>8.1f}{max(spent):>9.1f}  {ungraded}"
    )


def _time(taken: Sequence[Times]) -> list[Mark]:
    best = min(taken, key=lambda times: mean(times.decision))
    means = sorted(mean(times.decision) / 1e3 for times in taken)
    print(
        f"\ngrading: time per verdict on {FILE}, in file order; best of {REPETITIONS} processes"
        f" (mean {means[0]:.1f} to {means[-1]:.1f} µs); reading the clock, {best.clock} ns, is taken off"
    )
    extraction = [nanoseconds / 1e3 for nanoseconds in best.extraction]
    print(f"  extraction: p50 {quantile(extraction, 0.5):.1f} µs, p99 {quantile(extraction, 0.99):.1f} µs")
    print(f"  the cache alone answers {100 * mean(best.repeated):.1f} % (same gold, same answer as before)")
    print(f"  {'after extraction':<18}{'outputs':>8}{'<= 5 µs':>9}{'mean µs':>9}{'no child':>10}{'their mean µs':>15}")
    for name, repeats in (("all", True), ("without repeats", False)):
        row = decisions(best, repeats=repeats)
        print(
            f"  {name:<18}{row.outputs:>8}{row.quick_percent:>8.1f}%{row.mean_us:>9.1f}{row.childless_percent:>9.1f}%"
            f"{row.childless_mean_us:>15.1f}  ({row.slow} by a child)"
        )
    slow = [nanoseconds / 1e6 for nanoseconds in best.algebra]
    print(
        f"  slow path, the {len(slow)} own cases that a child decides: p50 {quantile(slow, 0.5):.1f} ms,"
        f" p99 {quantile(slow, 0.99):.1f} ms, slowest {max(slow):.1f} ms"
    )
    result, late = decisions(best, repeats=True), quantile(slow, 0.99)
    return [
        (
            result.quick_percent >= LEAST_QUICK_PERCENT,
            f"at least {LEAST_QUICK_PERCENT:g} % decided in 5 µs after extraction: {result.quick_percent:.1f} %",
        ),
        (result.mean_us <= MOST_MEAN_US, f"mean at most {MOST_MEAN_US:g} µs: {result.mean_us:.1f} µs"),
        (late <= MOST_SLOW_P99_MS, f"slow path p99 at most {MOST_SLOW_P99_MS:g} ms: {late:.1f} ms"),
    ]


def _hostile(wake: Wake) -> list[Mark]:
    start, middle, end = wake.usage
    print(f"\ngrading: {wake.answers:,} hostile answers through one checker")
    print(f"  {wake.seconds:.0f} s, {wake.answers / wake.seconds:,.0f} answers/s")
    print("  " + ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(wake.verdicts.items())))
    print(f"  slowest answer {wake.slowest_ms:.0f} ms ({wake.slowest_kind}), start of a new child included")
    print(f"  {wake.lost} timeouts and crashes, remembered ones included; {wake.children} child processes in all")
    for holder, mib in (
        ("caller", (start.parent_mib, middle.parent_mib, end.parent_mib)),
        ("child", (start.children_mib, middle.children_mib, end.children_mib)),
    ):
        print(f"  resident MiB of the {holder} at start, middle and end: {mib[0]:.0f}, {mib[1]:.0f}, {mib[2]:.0f}")
    print(f"  open descriptors before and after: {start.descriptors}, {end.descriptors}")
    print(f"  files in working and temporary folder before and after: {start.files}, {end.files}")
    print(f"  stuck slots: {wake.stuck}")
    right = wake.verdicts.get(Verdict.CORRECT, 0)
    growth = end.parent_mib - middle.parent_mib
    return [
        (
            not (right or wake.stuck or end.descriptors > start.descriptors or end.files > start.files),
            f"{wake.answers:,} hostile answers: {right} right, {wake.stuck} stuck, "
            f"{end.descriptors - start.descriptors} descriptors and {end.files - start.files} files left",
        ),
        (
            growth <= MOST_GROWTH_MIB,
            f"caller grows by at most {MOST_GROWTH_MIB:g} MiB over the second half: {growth:.1f} MiB",
        ),
    ]
