"""Runs of the oracle, what `relabel`, `regrade` and `export` make of them, and what all of it comes to.

One worker takes one unit at a time, so that nothing depends on which of two is faster.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.guard.digests import columns, differing, exported, masked, settings, table, tables
from tests.guard.terminal import ROOT, Answer, Part, run, run_parts

PROCESSBENCH = ROOT.parent / "shared" / "data" / "processbench_dev.jsonl"
ORDERLY = "policy=oracle cluster.workers=1 run.units_in_flight=1 run.report=false run.show_chains=0"
ESTIMATORS = ("fixed", "pooled", "first_success", "bisect")
DATA = {"sample": "data=sample", "processbench": "data=processbench data.path=processbench.jsonl data.limit=50"}

RULES = ("any", "threshold", "relative", "posterior", "three_class")
INTERVALS = ("clopper_pearson", "jeffreys", "posterior")
RELABELS = (
    *(f"estimator.rule={rule} estimator.threshold=0.3" for rule in RULES),
    *(f"estimator.rule={rule} estimator.threshold=0.5" for rule in ("threshold", "relative", "posterior")),
    "estimator.rule=posterior estimator.threshold=0.1 estimator.certainty=0.8",
    "estimator.rule=three_class estimator.threshold=0.25 estimator.neutral=0.25",
    *(f"estimator.rule=any estimator.interval={interval}" for interval in INTERVALS),
    "estimator.confidence=0.5",
    *(f"estimator.after_error={after}" for after in ("uncertain", "negative", "keep")),
    *(f"estimator={name}" for name in ESTIMATORS),
)
"""Each starts where the one before it ended. Shares of 8 rollouts are among the thresholds, where > and >= differ."""
REGRADES = ("grader.fallback=none", "grader.fallback=last_number", "grader.answer_pattern='(1)' estimator.rule=any")

FORMATS = (
    "trl", "axolotl", "openrlhf", "rlhflow", "qwen", "prm800k", "math_shepherd", "openr", "scan", "processbench", "orm",
    "preference", "parquet",
)  # fmt: skip
EXPORTS = (
    *(f"format={name}" for name in FORMATS),
    *(f"format={name} target=soft" for name in FORMATS),
    *(f"format={name} target=counts" for name in FORMATS),
    "format=trl file=json validation=0.2 seed=3",
    "format=trl file=parquet threshold=0.5 after_error=true",
    "format=prm800k uncertain=drop balance=chains",
    "format=math_shepherd uncertain=negative balance=steps",
    "format=preference preference.reader=step_dpo",
    "format=preference preference.margin=0.2 preference.pairs_per_branch=1 preference.span=rest",
    "format=qwen target=soft soft=value",
)
FEWER_EXPORTS = (*(f"format={name}" for name in FORMATS), "format=parquet target=counts", "format=qwen target=soft")
"""What is refused depends on the format alone, so one run has all."""


def labelled(folder: Path, data: str, estimators: Sequence[str] = ESTIMATORS) -> list[Answer]:
    """A run of each estimator, in folders of its name."""
    if data == "processbench":
        (folder / "processbench.jsonl").symlink_to(PROCESSBENCH)
    return run(folder, [f"label estimator={name} {ORDERLY} {DATA[data]} run_dir={name}" for name in estimators])


def summary(answer: Answer, *folders: Path) -> dict[str, Any]:
    """What a command said, in lines."""
    shown: dict[str, Any] = {"code": answer.code}
    if answer.code:
        shown["refusal"] = masked(answer.err, *folders).strip()
    if answer.out and not (answer.code and answer.err):
        shown["told"] = masked(answer.out, *folders).splitlines()
    return shown


def own(run_dir: Path, answer: Answer) -> dict[str, Any]:
    """A run itself."""
    return {**summary(answer, run_dir.parent), **tables(run_dir), "settings": settings(run_dir)}


def relabelled(run_dir: Path, folder: Path) -> Part:
    """What the labels of a run become with one change after the other, and for which there is a refusal."""
    shutil.copytree(run_dir, folder / "run")
    first = columns(table(run_dir, "labels"))
    changes = [*(f"relabel {change}" for change in RELABELS), *(f"regrade {change}" for change in REGRADES)]
    commands = [
        line
        for number, change in enumerate(changes)
        for line in (f"{change} run_dir=run", f"copy run/labels kept-{number}/labels")
    ]

    def collect(answers: Sequence[Answer]) -> dict[str, Any]:
        return {
            change: {**summary(answer, folder), "differing": differing(folder / f"kept-{number}", first)}
            for number, (change, answer) in enumerate(zip(changes, answers[::2], strict=True))
        }

    return Part(folder=folder, commands=commands, collect=collect)


def exports(run_dir: Path, folder: Path, wanted: Sequence[str]) -> Part:
    """What a run becomes in each layout."""
    commands = [f"export {kind} run_dir={run_dir} out=out-{number}" for number, kind in enumerate(wanted)]

    def collect(answers: Sequence[Answer]) -> dict[str, Any]:
        found = {}
        for number, (kind, answer) in enumerate(zip(wanted, answers, strict=True)):
            out = folder / f"out-{number}"
            files = exported(out, folder, run_dir.parent) if out.exists() else {}
            found[kind] = {**summary(answer, folder, run_dir.parent), "files": files}
        return found

    return Part(folder=folder, commands=commands, collect=collect)


PARTS = ("changes", "exports")
"""What follows from a run."""


def everything(
    folder: Path, data: str, estimators: Sequence[str], following: Sequence[str] = PARTS
) -> dict[str, dict[str, Any]]:
    """A run of each estimator and what follows from it; of processbench, no exports."""
    answers = labelled(folder, data, estimators)
    found = {}
    parts = {}
    for estimator, answer in zip(estimators, answers, strict=True):
        aside = folder / f"aside-{estimator}"
        aside.mkdir()
        run_dir = folder / estimator
        found[estimator] = {"label": own(run_dir, answer)}
        if "changes" in following:
            parts[f"{estimator} changes"] = relabelled(run_dir, aside)
        if "exports" in following and data == "sample":
            parts[f"{estimator} exports"] = exports(run_dir, aside, EXPORTS if estimator == "fixed" else FEWER_EXPORTS)
    for name, made in run_parts(parts).items():
        estimator, part = name.split()
        found[estimator][part] = made
    return found
