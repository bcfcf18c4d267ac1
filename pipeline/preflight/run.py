"""Looks at the model, the run directory and every node, and judges what it finds."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pipeline.config.label import LabelConfig
from pipeline.core.errors import StepvalueError
from pipeline.engines.base import Policy
from pipeline.engines.registry import policy_for
from pipeline.preflight.checks import Finding, Level, failed, judge, ok, warning
from pipeline.preflight.machine import Machine
from pipeline.storage.location import folder_at, storage_at
from pipeline.storage.objects import SCHEME_END

_FOLDER_SCHEME = "file:"
LookAtNodes = Callable[[tuple[str, ...]], Sequence[Machine]]
"""Looks at every node for these paths."""


def preflight(config: LabelConfig, look_at_nodes: LookAtNodes) -> list[Finding]:
    """All findings, in the order of the table. Raises ClusterError, and UsageError where a setting names nothing."""
    policy = policy_for(config.policy)
    with _marked(config.run_dir) as (mark, about_run_dir):
        more: dict[str, str] = {} if mark is None else {"run_dir": str(mark)}
        found = _nodes(config, policy, look_at_nodes, more, download=policy.download_bytes())
    if mark is not None:
        found = [_named(finding, str(mark), str(config.run_dir)) for finding in found]
    return [*found, *about_run_dir, _model(policy, config)]


def node_warnings(config: LabelConfig, look_at_nodes: LookAtNodes) -> Iterator[str]:
    """What is wrong with the nodes of a run that begins, as lines. The model's size is not asked for."""
    for finding in _nodes(config, policy_for(config.policy), look_at_nodes, {}, download=0.0):
        if finding.level is not Level.OK:
            yield f"{finding.check}: {finding.text}; {finding.remedy}"


def _nodes(
    config: LabelConfig, policy: Policy, look_at_nodes: LookAtNodes, more: Mapping[str, str], *, download: float
) -> list[Finding]:
    """Findings about the nodes. `more`: paths that they must see besides the model's."""
    needs = policy.needs()
    if config.cluster.gpus_per_worker == 0:
        needs = replace(needs, gpus=False)
    sampling = config.sampling
    paths = {**({} if needs.folder is None else {"model": needs.folder}), **more}
    machines = look_at_nodes(tuple(paths.values()))
    filtered = sampling.top_p < 1 or sampling.top_k > 0
    parts = policy.given_tensor_parallel() or 1
    return judge(machines, needs, paths, parts=parts, filtered=filtered, download=download)


def _named(finding: Finding, mark: str, run_dir: str) -> Finding:
    return replace(finding, text=finding.text.replace(mark, run_dir))


def _model(policy: Policy, config: LabelConfig) -> Finding:
    try:
        facts = asyncio.run(policy.facts(config.sampling))
    except StepvalueError as error:
        return failed("policy", str(error))
    return ok("policy", f"its tokenizer loads; a context of {facts.max_model_len:,} tokens")


@contextmanager
def _marked(run_dir: str | None) -> Iterator[tuple[Path | None, list[Finding]]]:
    """A file in the nearest existing parent of a run directory, which every node must see, while the block runs; and what is
    known of the run directory without looking at nodes."""
    if run_dir is None:
        yield (
            None,
            [warning("run_dir", "not given", "give run_dir to check it too")],
        )
        return
    if SCHEME_END in run_dir and not run_dir.startswith(_FOLDER_SCHEME):
        yield None, [_bucket(run_dir)]
        return
    folder = folder_at(run_dir)
    parent = next(each for each in (folder, *folder.parents) if each.is_dir())
    mark = parent / f".stepvalue-doctor-{secrets.token_hex(8)}"
    try:
        mark.touch(exist_ok=False)
    except OSError as error:
        text = f"{parent} cannot be written ({error.strerror or error})"
        remedy = "choose another run_dir, or correct its rights"
        yield None, [failed("run_dir", text, remedy)]
        return
    try:
        yield mark, []
    finally:
        with contextlib.suppress(OSError):
            mark.unlink()


def _bucket(run_dir: str) -> Finding:
    try:
        storage_at(run_dir).names("")
    except StepvalueError as error:
        return failed("run_dir", str(error))
    return ok("run_dir", f"{run_dir} answers, from this machine")
