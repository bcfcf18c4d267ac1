"""Schemas of the commands that work on a finished run: what is to be changed about its labels, and what is left as it is."""

import dataclasses
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar

from pipeline.config.fields import RELABEL, ChosenSettings, SettingInfo, Settings, describe_settings
from pipeline.config.label import EstimatorConfig, GraderConfig
from pipeline.core.doors import Door
from pipeline.core.errors import UsageError


@dataclass(kw_only=True, slots=True)
class Change(Settings):
    """Settings for stored rollouts; null: as the current labels were made. `change_of` makes the subclass with the settings."""

    SCHEMAS: ClassVar[tuple[type[ChosenSettings], ...]] = ()
    """What may be changed to: the settings of the implementations."""

    def check(self) -> None:
        """Raise ValueError where no implementation, or not the one that is named, takes what is given."""
        given = {key: value for key, value in dataclasses.asdict(self).items() if value not in (None, "")}
        faults = []
        for schema in self.SCHEMAS:
            if given.keys() <= {each.name for each in describe_settings(schema)} and _may_be(schema, given):
                try:
                    schema(**given)
                except ValueError as error:
                    faults.append(error)
                else:
                    return
        if faults:
            raise faults[0]


def change_of(base: type[ChosenSettings], schemas: Iterable[type[ChosenSettings]]) -> type[Change]:
    """A section's settings that may be changed on a finished run (RELABEL), of all implementations: each may be null."""
    found: dict[str, SettingInfo] = {}
    known = (base, *schemas)
    for schema in known:
        for each in describe_settings(schema):
            if RELABEL in each.marks:
                found.setdefault(each.name, each)
    fields = [
        (each.name, Annotated[each.kind | None, *each.ranges, *each.marks] if each.ranges else each.kind | None, None)
        for each in found.values()
    ]
    name = base.__name__.replace("Config", "Change")
    constants = {"SECTION": base.SECTION, "SCHEMAS": known[1:] or known, "__doc__": Change.__doc__}
    return dataclasses.make_dataclass(name, fields, bases=(Change,), namespace=constants, kw_only=True, slots=True)


def change_type(base: Any, door: Door[Any]) -> type[Change]:
    """`change_of` all implementations of a section: ours, and those of others that can be loaded."""
    return _change_type(base, door)


@cache
def _change_type(base: Any, door: Any) -> type[Change]:
    schemas = list(door.our_settings().values())
    for name in door.names():
        if name not in door.ours:
            # One that is broken is told of when it is asked for.
            with suppress(UsageError):
                schemas.append(door.settings(name))
    return change_of(base, schemas)


def _may_be(schema: type[ChosenSettings], given: dict[str, Any]) -> bool:
    """Whether this is the implementation that is named, or none is."""
    return given.get(schema.CHOSEN_BY) in (None, schema.usual())


EstimatorChange = change_of(EstimatorConfig, [])
GraderChange = change_of(GraderConfig, [])


@dataclass(kw_only=True, slots=True)
class RelabelConfig:
    """Everything `relabel` needs."""

    run_dir: str = "???"
    """The run directory."""
    lock: bool = True
    """false: for a file system without `flock`; see to it then that nothing else works on the run directory."""
    estimator: Change = field(default_factory=EstimatorChange)
    """Its other settings only say what is sampled."""


@dataclass(kw_only=True, slots=True)
class RegradeConfig:
    """Everything `regrade` needs."""

    run_dir: str = "???"
    """The run directory."""
    lock: bool = True
    """false: for a file system without `flock`; see to it then that nothing else works on the run directory."""
    grader: Change = field(default_factory=GraderChange)
    estimator: Change = field(default_factory=EstimatorChange)


@dataclass(kw_only=True, slots=True)
class AuditConfig:
    """Everything `audit` needs."""

    run_dir: str = "???"
    """The run directory."""
    prune: bool = False
    """Remove what no record needs, if nothing is wrong."""
    lock: bool = True
    """Only `prune` takes the lock; false: for a file system without `flock`."""
