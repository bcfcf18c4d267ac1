"""The command `check`: has programs prove or refute the steps of chains."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, interruptible, write_lines
from pipeline.cli.options import named_implementation
from pipeline.cli.workers import NOTHING_FOUND, Work, cost_lines, ending_lines, head_line
from pipeline.config.check import CheckRunConfig
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.core.output import say

if TYPE_CHECKING:
    from pipeline.core.progress import Summary


def _check(config: CheckRunConfig) -> int:
    config, missing = _possible(config)
    code = CHECKING(config)
    for name, why in missing.items():
        say(f"{name} has checked nothing: it {why}")
    return NOTHING_FOUND if missing else code


def _possible(config: CheckRunConfig) -> tuple[CheckRunConfig, Mapping[str, str]]:
    """The settings without the verifiers that lack something on this machine, and what those lack. Says that, and what to know
    of the inputs of the others. Raises UsageError where none is left, and UsageError and InputError where inputs cannot be
    used."""
    from pipeline.runtime.checking.task import checked_verifiers, missing_parts
    from pipeline.verifiers.registry import warnings_of

    verifiers = checked_verifiers(config)
    missing = missing_parts(verifiers)
    left = [each for each in verifiers if each.kind not in missing]
    if not left:
        raise UsageError("; ".join(f"checks=[{name}]: it {why}" for name, why in missing.items()))
    for name, why in missing.items():
        say(f"{name} is left out: it {why}")
    for verifier in left:
        for line in warnings_of(verifier):
            say(f"warning: {line}")
    return replace(config, checks=[each.kind for each in left]) if missing else config, missing


def _estimate(config: CheckRunConfig) -> Iterator[str]:
    from pipeline.runtime.chain_run.estimate import estimate
    from pipeline.runtime.checking.task import CheckTask, checked_verifiers

    for verifier in checked_verifiers(config):
        plan = estimate(CheckTask(replace(config, verifier=verifier)))
        yield head_line(plan, "check")
        yield from cost_lines(plan)


def _ended(config: CheckRunConfig, found: "Mapping[str, Summary]") -> bool:
    from pipeline.analysis.checks import check_lines, check_summary
    from pipeline.storage.location import storage_at

    seen = 0
    with interruptible():
        for name, each in found.items():
            summary = check_summary(storage_at(config.run_dir), name, partial=config.partial)
            seen += summary.counts.seen
            write_lines(check_lines(summary))
            made = format_count(each.added["chains"], "chain")
            write_lines(ending_lines(each, made, (each.added["steps"], "{:,.0f} steps/s")))
    return seen > 0


def _implied(written: Mapping[str, str]) -> dict[str, str]:
    """The verifier that the section `verifier` is about: the only one that `checks` names.

    Raises UsageError where it is none of them, and where they are several."""
    from pipeline.verifiers.registry import VERIFIERS

    names = [name.strip("'\" ") for name in written.get("checks", "").strip("[] ").split(",") if name.strip("'\" ")]
    if written.get("checks") in (None, "null") or not names:
        return {}
    own = [key for key in written if key.startswith("verifier.")]
    named = named_implementation("verifier", written)
    if named is not None and named not in names:
        raise UsageError(
            f"verifier={named} is none of checks=[{','.join(names)}]: name it there too, or leave verifier out"
        )
    if own and named is None and len(names) > 1:
        raise UsageError(f"{own[0]}: this is a setting of one verifier: say of which one, such as verifier={names[0]}")
    return {"verifier": names[0]} if named is None and names[0] in VERIFIERS.names() else {}


CHECKING: Work[CheckRunConfig, "Mapping[str, Summary]"] = Work(
    run="pipeline.runtime.checking.task:check_run", ended=_ended, estimate=_estimate
)
CHECK = Command(
    name="check",
    summary="have programs prove or refute the steps of chains",
    about=(
        "check: a verifier, such as `arithmetic`, says of each step that it is refuted, that it holds, or that this is "
        "unknown. It needs no rollouts."
    ),
    examples=(
        "check run_dir=out 'checks=[arithmetic,algebra]'",
        "check data.path=rows.jsonl run_dir=checked verifier=algebra",
        "check run_dir=out 'checks=[code]' --estimate",
        "check run_dir=out 'checks=[arithmetic,algebra]' verifier=algebra verifier.deadline_seconds=10",
        "check run_dir=out 'checks=[arithmetic]' processes=8 partial=true",
        "check run_dir=out 'checks=[facts]' verifier.table=facts.parquet",
    ),
    notes="""\
Findings go to RUN_DIR/checks/VERIFIER, a run directory of its own: the same command goes on after an interruption, and checks
what is new. Another verifier has its own folder. A verifier with other settings, or another version of it, is refused there:
move its folder away to check again.

A verifier is asked in processes of their own, with limits of time and memory. A step that passes them, or that kills its
process, is unknown; such steps are counted.

A part that holds says nothing of its step. At the end, the steps with a verdict are compared with the labels of the run.
""",
    most_used=("run_dir", "checks", "verifier", "data.path", "verifier.deadline_seconds", "processes", "partial"),
    schema=CheckRunConfig,
    run=_check,
    work=CHECKING,
    flags=("estimate",),
    implied=_implied,
)
