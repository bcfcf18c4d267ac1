"""Looks at every node of a run: those of the cluster that this process has joined, or this machine alone."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pipeline.preflight.machine import Machine, look
from pipeline.runtime.environment import forwarded


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """What was seen. `free_gpus`: those that no worker of Ray has now; None where Ray does not run."""

    machines: Sequence[Machine]
    free_gpus: float | None = None


def joined_nodes(
    paths: tuple[str, ...], models: tuple[str, ...] = (), check: Callable[[], None] = lambda: None
) -> Nodes:
    """Every node of the cluster that this process has joined, with its clock beside this machine's. The nodes look with the
    environment that workers get there. `check` is called meanwhile and may raise."""
    from pipeline.runtime.cluster import free_gpus, on_every_node

    answers = on_every_node(look, paths, models, variables=forwarded(os.environ).plain, check=check)
    machines = [
        Machine(host=answer.host, answers=False, resources=answer.resources)
        if answer.result is None
        else replace(answer.result, clock=answer.result.clock - answer.arrived, resources=answer.resources)
        for answer in answers
    ]
    return Nodes(machines=machines, free_gpus=free_gpus())


def this_machine(paths: tuple[str, ...], models: tuple[str, ...] = ()) -> Nodes:
    return Nodes(machines=[replace(look(paths, models), clock=0.0)])
