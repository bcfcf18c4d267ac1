"""Looks at every node of a run: those of the cluster that this process has joined, or this machine alone."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.preflight.machine import Machine, look


def joined_nodes(paths: tuple[str, ...]) -> Sequence[Machine]:
    """Every node of the cluster that this process has joined, with its clock beside this machine's."""
    from pipeline.runtime.cluster import on_every_node

    return [
        Machine(host=host, answers=False) if machine is None else replace(machine, clock=machine.clock - arrived)
        for host, machine, arrived in on_every_node(look, paths)
    ]


def this_machine(paths: tuple[str, ...]) -> Sequence[Machine]:
    return [replace(look(paths), clock=0.0)]
