"""Schemas of the commands that work on a finished run: which settings of its labels may change."""

import dataclasses
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from pipeline.config.consensus import ConsensusChange
from pipeline.config.fields import RELABEL, ChosenSettings, SettingInfo, Settings, describe_settings
from pipeline.config.label import EstimatorConfig, GraderConfig
from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry

_KEPT = 16
"""Classes of changes that are kept: one for each section, and more where objects with settings of their own are given."""


@dataclass(kw_only=True, slots=True)
class Change(Settings):
    """New settings for stored rollouts; null keeps the setting of the current labels. `change_of` makes the subclasses."""

    SCHEMAS: ClassVar[tuple[type[ChosenSettings], ...]] = ()
    """The settings classes of the implementations that a change may choose."""

    def check(self) -> None:
        """Raise ValueError if no implementation, or not the named one, accepts the given settings."""
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
    """The class of a section's settings that may change on a finished run (mark RELABEL), from all implementations.

    Every field may be null.
    """
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


def change_type(base: Any, registry: Registry[Any]) -> type[Change]:
    """`change_of` for all implementations of a section: the built-in ones and the plug-ins that can be loaded."""
    schemas = list(registry.our_settings().values())
    for name in registry.names():
        if name not in registry.ours:
            # A broken plug-in is reported when a user chooses it.
            with suppress(UsageError):
                schemas.append(registry.settings(name))
    return _change_of(base, tuple(schemas))


@lru_cache(maxsize=_KEPT)
def _change_of(base: type[ChosenSettings], schemas: tuple[type[ChosenSettings], ...]) -> type[Change]:
    return change_of(base, schemas)


def _may_be(schema: type[ChosenSettings], given: dict[str, Any]) -> bool:
    """Whether the given settings name this implementation, or name no implementation."""
    return given.get(schema.CHOSEN_BY) in (None, schema.usual())


EstimatorChange = change_of(EstimatorConfig, [])
GraderChange = change_of(GraderConfig, [])


@dataclass(kw_only=True, slots=True)
class RelabelConfig:
    """The settings of `relabel`."""

    run_dir: str = "???"
    """The run directory."""
    lock: bool = True
    """false: take no lock, for a file system without `flock`. Make sure that nothing else writes to the run directory."""
    estimator: Change = field(default_factory=EstimatorChange)
    """The estimator's other settings only affect sampling."""
    consensus: ConsensusChange = field(default_factory=ConsensusChange)


@dataclass(kw_only=True, slots=True)
class RegradeConfig:
    """The settings of `regrade`."""

    run_dir: str = "???"
    """The run directory."""
    lock: bool = True
    """false: take no lock, for a file system without `flock`. Make sure that nothing else writes to the run directory."""
    grader: Change = field(default_factory=GraderChange)
    estimator: Change = field(default_factory=EstimatorChange)


@dataclass(kw_only=True, slots=True)
class AuditConfig:
    """The settings of `audit`."""

    run_dir: str = "???"
    """The run directory."""
    prune: bool = False
    """Remove files that no record needs, if the audit finds nothing wrong."""
    lock: bool = True
    """false: take no lock, for a file system without `flock`. Only `prune` takes the lock."""
