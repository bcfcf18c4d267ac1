"""Looks at the model, the run directory and every node, and judges what it finds."""

import asyncio
import contextlib
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pipeline.config.label import LabelConfig
from pipeline.core.errors import ClusterError, InputError, StepvalueError, UsageError
from pipeline.core.formatting import format_count
from pipeline.data.prompts import Prompter
from pipeline.data.rows import input_files
from pipeline.engines.base import EngineNeeds, Policy
from pipeline.engines.hub import hub_asked_once, hub_is_off, hub_name
from pipeline.engines.registry import policy_for
from pipeline.preflight.checks import MODEL, Finding, Level, Needs, failed, judge, judge_disks, ok, warning
from pipeline.preflight.machine import Machine, Nodes
from pipeline.runtime.placement import ROUNDING, cpus_and_gpus, share_of, unused_gpus, uses_gpus
from pipeline.storage.location import folder_at, is_bucket, storage_at

LookAtNodes = Callable[[tuple[str, ...], tuple[str, ...]], Nodes]
"""Looks at every node for these paths, and for these models of the Hub."""


def preflight(config: LabelConfig, look_at_nodes: LookAtNodes) -> Iterator[Finding]:
    """All findings, in the order of the table, each as soon as it is known.

    Raises ClusterError where the cluster cannot be joined, and UsageError where a setting names nothing.
    """
    policy = policy_for(config.policy)
    of_engine = policy.needs(_gpus_of_each(config))
    with _marked(config.run_dir) as (mark, about_run_dir):
        paths = _paths(of_engine, None if mark is None else str(mark))
        nodes = look_at_nodes(tuple(paths.values()), of_engine.hub_names)
    machines = nodes.machines
    needs = _needs(config, policy, of_engine, machines, paths)
    for finding in judge(machines, needs):
        yield finding if mark is None else _named(finding, str(mark), str(config.run_dir))
    yield from about_run_dir
    yield _data(config.data.path)
    with contextlib.ExitStack() as stack:
        if of_engine.hub_names:
            yield _hub(stack.enter_context(hub_asked_once()))
        found = _model(policy, of_engine, config)
        yield found
        if found.level is Level.OK:
            # What follows asks for the sizes of the model.
            yield _workers(config, policy, nodes)
            yield judge_disks(machines, gpus=needs.gpus, download=policy.download_bytes())


def node_warnings(config: LabelConfig, look_at_nodes: LookAtNodes) -> Iterator[str]:
    """What is wrong with the nodes of a run that begins, as lines: its run directory exists already. The model and the sizes of
    its files are not asked for, because workers load it at once."""
    policy = policy_for(config.policy)
    of_engine = policy.needs(_gpus_of_each(config))
    shared = config.run_dir is not None and not is_bucket(config.run_dir)
    paths = _paths(of_engine, str(folder_at(str(config.run_dir))) if shared else None)
    machines = look_at_nodes(tuple(paths.values()), ()).machines
    needs = _needs(config, policy, of_engine, machines, paths)
    for finding in (*judge(machines, needs), judge_disks(machines, gpus=needs.gpus, download=0.0)):
        if finding.level is not Level.OK:
            yield f"{finding.check}: {finding.text}; {finding.remedy}"


def _gpus_of_each(config: LabelConfig) -> float:
    """The GPUs of a worker that has some, as far as the settings say."""
    return config.cluster.gpus_per_worker or 1.0


def _paths(of_engine: EngineNeeds, run_dir: str | None) -> Mapping[str, str]:
    """What all nodes must see: what it is -> its path."""
    paths = {MODEL: of_engine.folder, "run_dir": run_dir}
    return {what: path for what, path in paths.items() if path is not None}


def _needs(
    config: LabelConfig,
    policy: Policy,
    of_engine: EngineNeeds,
    machines: Sequence[Machine],
    paths: Mapping[str, str],
) -> Needs:
    sampling, each = config.sampling, _gpus_of_each(config)
    gpus = uses_gpus([machine.resources for machine in machines], config.cluster, policy)
    engines = math.floor(1 / each + ROUNDING) if each < 1 else 1
    return Needs(
        gpus=gpus,
        unasked_cpus=policy.loads_model and config.cluster.gpus_per_worker is None and not gpus,
        share=min(1.0, engines * of_engine.memory_share),
        parts=policy.given_tensor_parallel() or max(1, int(each)),
        filtered=sampling.top_p < 1 or sampling.top_k > 0,
        paths=paths,
    )


def _data(path: str) -> Finding:
    try:
        files = input_files(path)
    except InputError as error:
        return failed("data", str(error))
    return ok("data", format_count(len(files), "file") if files else f"{path} is read from the Hub")


def _workers(config: LabelConfig, policy: Policy, nodes: Nodes) -> Finding:
    """The workers that the run would have now, as `label` decides it."""
    resources = [machine.resources for machine in nodes.machines]
    try:
        taken = share_of(resources, config.cluster, policy)
    except ClusterError as error:
        if config.cluster.address is not None and config.cluster.wait_seconds:
            wait = f"`label` waits up to {config.cluster.wait_seconds:g} s for nodes to join (cluster.wait_seconds)"
            return warning("workers", str(error), wait)
        return failed("workers", str(error))
    except UsageError as error:
        return failed("workers", str(error))
    if nodes.free_gpus is not None and nodes.free_gpus < taken.workers * taken.gpus:
        return warning(
            "workers",
            f"{taken.workers * taken.gpus:g} GPUs are needed, and others use all but {nodes.free_gpus:g} of the cluster's",
            "end what uses them (`ray status`), or lower cluster.workers; `label` waits up to "
            f"{config.cluster.wait_seconds:g} s for resources (cluster.wait_seconds)",
        )
    if unused := unused_gpus(resources, taken, config.cluster):
        return warning("workers", unused, "set cluster.workers, cluster.cpus_per_worker or cluster.gpus_per_worker")
    return ok("workers", f"{format_count(taken.workers, 'worker')}, each with {cpus_and_gpus(taken.cpus, taken.gpus)}")


def _named(finding: Finding, mark: str, run_dir: str) -> Finding:
    return replace(finding, text=finding.text.replace(mark, run_dir))


def _hub(unreachable: str) -> Finding:
    if unreachable:
        return warning(
            "Hub",
            f"{hub_name()} cannot be reached ({unreachable}): only models that lie in the cache can be loaded",
            "check the network, HTTPS_PROXY and HF_ENDPOINT; set HF_HUB_OFFLINE=1 where the cache has the model",
        )
    return ok("Hub", "HF_HUB_OFFLINE is set: models come from the caches" if hub_is_off() else f"{hub_name()} answers")


def _model(policy: Policy, of_engine: EngineNeeds, config: LabelConfig) -> Finding:
    try:
        facts = asyncio.run(policy.facts(config.sampling))
        opened = Prompter(facts.tokenizer, config.policy.prompt, config.sampling.max_tokens, facts.max_model_len).opened
    except StepvalueError as error:
        return failed("policy", str(error))
    loads = "its tokenizer loads; " if policy.loads_model or of_engine.hub_names else ""
    where = config.policy.prompt.thinking
    thinks = f"; prompts open {opened.strip()} (policy.prompt.thinking={where.value})" if opened and where else ""
    return ok("policy", f"{loads}a context of {facts.max_model_len:,} tokens{thinks}")


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
    if is_bucket(run_dir):
        yield None, [_bucket(run_dir)]
        return
    folder = folder_at(run_dir)
    parent = next(each for each in (folder, *folder.parents) if each.is_dir())
    mark = parent / f".stepvalue-doctor-{secrets.token_hex(8)}"
    try:
        mark.touch(exist_ok=False)
    except OSError as error:
        text = f"no file can be made in {parent} ({error.strerror or error})"
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
