"""What a setting says of itself: its range, whether it is part of what a run is the result of, whether it may change later.

A setting is a field of a dataclass under `Settings`. Its annotation holds the rest, so that one statement gives the check, the
error and the reference:

    successes: Annotated[int, Interval(ge=1, le=1000), RELABEL] = 1

Ranges are those of `annotated_types`. A field without a mark is part of a run's identity, and stays as it is for good.
"""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, ClassVar, Final, TypeVar, get_args, get_origin, get_type_hints

from annotated_types import BaseMetadata, Ge, GroupedMetadata, Gt, Le, Lt


class Mark(Enum):
    """What is said of a setting beside its range."""

    FREE = "free"
    """No part of a run's identity: it changes no label's meaning, and may differ from one start to the next."""
    RELABEL = "relabel"
    """`relabel` or `regrade` may change it on a finished run, without an engine."""
    REFUSED = "refused"
    """Given beside an implementation that has no such setting, it is an error. Other such settings have no effect."""
    CHOOSES = "chooses"
    """To give it alone chooses the implementation that has it."""
    BY_GROUP = "by group"
    """It is not given by itself: the group's option says it, and brings the settings that belong to it."""


S = TypeVar("S")

FREE, RELABEL, REFUSED, CHOOSES, BY_GROUP = Mark.FREE, Mark.RELABEL, Mark.REFUSED, Mark.CHOOSES, Mark.BY_GROUP


OWN: Final = {"omegaconf_ignore": True}
"""Metadata of a field with the own settings of the implementation that another setting names. It is not given by itself: on the
command line they are a section under their own name."""


class Settings:
    """Base of a section of settings, a dataclass: checks its ranges when it is made, then what `check` adds."""

    __slots__ = ()
    SECTION: ClassVar[str] = ""
    """Where it stands among all settings, such as `estimator`: messages name `estimator.threshold`."""

    def __post_init__(self) -> None:
        for field in describe_settings(type(self)):
            value = getattr(self, field.name)
            if value is not None:
                check(field.holds(value), _key(self.SECTION, field.name), _shown(value), field.wanted)
        self.check()

    def check(self) -> None:
        """Raise ValueError for settings that are out of a range that no annotation can say, or do not go together."""


class ChosenSettings(Settings):
    """Base of a section behind a door: one of its settings names the implementation."""

    __slots__ = ()
    CHOSEN_BY: ClassVar[str] = "name"

    @classmethod
    def usual(cls) -> str:
        """The implementation that the defaults are for."""
        return str(getattr(cls(), cls.CHOSEN_BY))

    @property
    def chosen(self) -> str:
        """The implementation that these settings are for."""
        return str(getattr(self, self.CHOSEN_BY))


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInfo:
    """A setting as its annotation describes it: the type without marks and ranges, what is `wanted` of a value in words."""

    name: str
    kind: Any
    ranges: tuple[BaseMetadata, ...]
    marks: frozenset[Mark]

    def holds(self, value: Any) -> bool:
        """Whether a value is in range; of a list, whether all of it is."""
        values = value if isinstance(value, list) else [value]
        return all(_within(each, one) for each in values for one in self.ranges)

    @property
    def wanted(self) -> str:
        """The range in words: `at least 1`, `1 to 1000`, `above 0 and at most 1`; empty where none is."""
        return f"{self._range} each" if self._range and get_origin(self.kind) is list else self._range

    @property
    def _range(self) -> str:
        bounds = {type(one): one for one in self.ranges}
        low = bounds.get(Ge) or bounds.get(Gt)
        high = bounds.get(Le) or bounds.get(Lt)
        if high == Lt(math.inf):
            high = None
        whole = int in (self.kind, *get_args(self.kind))
        match low, high:
            case Ge(ge=least), Le(le=most):
                return f"{least} to {most}" if whole else f"between {least} and {most}"
            case Gt(gt=least), Lt(lt=most):
                return f"between {least} and {most}, exclusive"
            case Ge(ge=0), None:
                return "0 or more"
            case Ge(ge=least), None:
                return f"at least {least}"
            case Gt(gt=least), None:
                return f"above {least}"
            case None, Le(le=most):
                return f"at most {most}"
            case None, Lt(lt=most):
                return f"below {most}"
            case Gt(gt=least), Le(le=most):
                return f"above {least} and at most {most}"
            case Ge(ge=least), Lt(lt=most):
                return f"at least {least} and below {most}"
        return ""


def check(condition: bool, key: str, value: object, wanted: str) -> None:
    """Raise ValueError unless `condition` holds, naming the key, its value and what it must be."""
    if not condition:
        raise ValueError(f"{key}={value} is out of range: it must be {wanted}")


def describe_settings(schema: Any) -> tuple[SettingInfo, ...]:
    """The settings of a section, in their order; inner sections are among them, without a range. OWN is none."""
    return _described(schema)


@cache
def _described(schema: Any) -> tuple[SettingInfo, ...]:
    hints = get_type_hints(schema, include_extras=True)
    found = []
    for field in dataclasses.fields(schema):
        if field.metadata == OWN:
            continue
        hint = hints[field.name]
        extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        found.append(
            SettingInfo(
                name=field.name,
                kind=get_args(hint)[0] if extras else hint,
                ranges=tuple(_ranges(extras)),
                marks=frozenset(extra for extra in extras if isinstance(extra, Mark)),
            )
        )
    return tuple(found)


def marked_settings(schema: type, mark: Mark) -> list[str]:
    """The names of a section's settings that have a mark."""
    return [field.name for field in describe_settings(schema) if mark in field.marks]


def identifying(settings: Settings) -> dict[str, object]:
    """The settings of a section that are part of a run's identity; inner sections as dicts, without what is FREE in them."""
    found: dict[str, object] = {}
    for field in describe_settings(type(settings)):
        value = getattr(settings, field.name)
        if Mark.FREE not in field.marks:
            found[field.name] = _plain(value)
    return found


def as_type(settings: Any, schema: type[S]) -> S:
    """Settings as those of a subclass, with its defaults for what the base does not know. Raises ValueError for others."""
    if isinstance(settings, schema):
        return settings
    return schema(**in_common(settings, schema))


def in_common(settings: Any, schema: Any) -> dict[str, Any]:
    """Those of some settings that another section has too."""
    names = {field.name for field in dataclasses.fields(schema)}
    return {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings) if field.name in names}


def _plain(value: object) -> object:
    if isinstance(value, Settings):
        return identifying(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def _ranges(extras: tuple[object, ...]) -> Iterator[BaseMetadata]:
    for extra in extras:
        if isinstance(extra, GroupedMetadata):
            yield from _ranges(tuple(extra))
        elif isinstance(extra, Ge | Gt | Le | Lt):
            yield extra


def _within(value: Any, one: BaseMetadata) -> bool:
    match one:
        case Ge(ge=least):
            return bool(value >= least)
        case Gt(gt=least):
            return bool(value > least)
        case Le(le=most):
            return bool(value <= most)
        case Lt(lt=most):
            return bool(value < most)
    return True


def _shown(value: object) -> object:
    return repr(value) if isinstance(value, str) else value


def _key(section: str, name: str) -> str:
    return f"{section}.{name}" if section else name
