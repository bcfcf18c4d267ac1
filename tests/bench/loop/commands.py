"""A stage of the loop, and the commands that stages share. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.tiny.policy import TinyPolicy

ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""The model is so small that threads wait for each other: on two cores that others used too, training took more than ten
times as long with two."""
Command = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One command of the loop, as what stands behind `python -m pipeline`, and environment variables it is given. `before`:
    what is called first. `shown_again`: it prints a result, so it is run again even if it is done."""

    name: str
    command: Command
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None
    shown_again: bool = False


def labelled(policy: TinyPolicy, problems: Path, run_dir: Path, *settings: str) -> Command:
    """Label chains of the policy for these problems, or those that the file has."""
    return (
        "label",
        *policy.overrides,
        f"data.path={problems}",
        f"run_dir={run_dir}",
        *settings,
        "run.show_chains=0",
    )


def trained(policy: TinyPolicy, run_dir: Path, out: Path, settings: Mapping[str, Any]) -> Command:
    """Train a reward model from the policy's own weights on the present labels of a run."""
    return (
        "train",
        f"run_dir={run_dir}",
        f"model={policy.asset}",
        f"out={out}",
        *(f"{name}='{value}'" if name == "separator" else f"{name}={value}" for name, value in settings.items()),
    )


def scored(model: Path, run_dir: Path, out: Path, *settings: str) -> Command:
    """Score the chains of a run by a model."""
    return ("score", f"model={model}", *settings, f"run_dir={run_dir}", f"out={out}")


def searched(
    policy: TinyPolicy, scorer: Path, problems: Path, run_dir: Path, method: str, n: int, *settings: str
) -> Command:
    """Solve problems with the policy, steered by a reward model of `trained`."""
    return (
        "search",
        f"search={method}",
        f"search.n={n}",
        *policy.overrides,
        f"scorer.model={scorer}",
        f"data.path={problems}",
        f"run_dir={run_dir}",
        *settings,
    )


def selected(scores: Path, run_dir: Path, out: Path, *settings: str) -> Command:
    """Choose among the candidates of a run by their scores."""
    return ("select", f"scores={scores}", f"run_dir={run_dir}", *settings, f"out={out}")
