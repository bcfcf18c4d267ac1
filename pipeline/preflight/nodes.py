"""Looks at every node of a run: those of the cluster that this process has joined, or this machine alone."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from pipeline.preflight.machine import Machine, look
from pipeline.runtime.environment import forwarded


def joined_nodes(paths: tuple[str, ...], check: Callable[[], None] = lambda: None) -> Sequence[Machine]:
    """Every node of the cluster that this process has joined, with its clock beside this machine's. The nodes look with the
    environment that workers get there. `check` is called meanwhile and may raise."""
    from pipeline.runtime.cluster import on_every_node

    answers = on_every_node(look, paths, variables=forwarded(os.environ).plain, check=check)
    return [
        Machine(host=answer.host, answers=False, resources=answer.resources)
        if answer.result is None
        else replace(answer.result, clock=answer.result.clock - answer.arrived, resources=answer.resources)
        for answer in answers
    ]


def this_machine(paths: tuple[str, ...]) -> Sequence[Machine]:
    return [replace(look(paths), clock=0.0)]
