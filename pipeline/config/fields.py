"""Declares settings: their range, whether they belong to a run's identity, and whether they may change later.

A setting is a field of a subclass of `Settings`. One annotation gives the check, the error message and the reference:

    successes: Annotated[int, Interval(ge=1, le=1000), RELABEL] = 1

Ranges are written with `annotated_types`. A field without a mark is part of a run's identity and never changes.
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
    """A property of a setting besides its range."""

    FREE = "free"
    """The setting is not part of a run's identity. It does not change the meaning of labels and may differ between starts."""
    RELABEL = "relabel"
    """`relabel` or `regrade` may change the setting on a finished run, without an engine."""
    REFUSED = "refused"
    """The setting is an error if the chosen implementation does not have it. Without this mark it has no effect then."""
    CHOOSES = "chooses"
    """The setting alone chooses the implementation that has it."""
    BY_GROUP = "by group"
    """The group's option sets it, together with the settings that belong to it. Given directly, it stands for that option."""
    TABLE = "table"
    """The setting is a file, or SAMPLE. A command makes its path absolute: workers and later commands have other folders."""


S = TypeVar("S")

FREE, RELABEL, REFUSED, CHOOSES, BY_GROUP = Mark.FREE, Mark.RELABEL, Mark.REFUSED, Mark.CHOOSES, Mark.BY_GROUP
TABLE = Mark.TABLE
SAMPLE = "sample"
"""The name of a shipped table."""


OWN: Final = {"omegaconf_ignore": True}
"""Metadata of a field that holds the settings of the implementation which another setting names. The field is not given
directly: on the command line its settings are a section with a name of its own."""


class Settings:
    """Base of a section of settings, a dataclass. On creation it checks the ranges and then calls `check`."""

    __slots__ = ()
    SECTION: ClassVar[str] = ""
    """The dotted name of the section, such as `estimator`; error messages name `estimator.threshold`."""

    def __post_init__(self) -> None:
        for field in describe_settings(type(self)):
            value = getattr(self, field.name)
            if value is not None:
                check(field.holds(value), _key(self.SECTION, field.name), _shown(value), field.wanted)
        self.check()

    def check(self) -> None:
        """Raise ValueError for what annotations cannot express: other ranges, and settings that exclude each other."""


class ChosenSettings(Settings):
    """Base of a section that has several implementations (see `core.registry`); the setting CHOSEN_BY names one of them."""

    __slots__ = ()
    CHOSEN_BY: ClassVar[str] = "name"

    @classmethod
    def usual(cls) -> str:
        """The name of the default implementation."""
        return str(getattr(cls(), cls.CHOSEN_BY))

    @property
    def implementation(self) -> str:
        """The name of the implementation that these settings choose."""
        return str(getattr(self, self.CHOSEN_BY))


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInfo:
    """A setting as its annotation describes it. `kind` is the type without marks and ranges."""

    name: str
    kind: Any
    ranges: tuple[BaseMetadata, ...]
    marks: frozenset[Mark]

    def holds(self, value: Any) -> bool:
        """Whether a value is in range; for a list, whether every item is."""
        values = value if isinstance(value, list) else [value]
        return all(_within(each, one) for each in values for one in self.ranges)

    @property
    def wanted(self) -> str:
        """The range in words: `at least 1`, `1 to 1000`, `above 0 and at most 1`; empty without a range."""
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
    """Raise ValueError unless `condition` holds. The message names the key, its value and the `wanted` range."""
    if not condition:
        raise ValueError(f"{key}={value} is out of range: it must be {wanted}")


def refuse_equal(key: str, count: int, what: str, temperature: float | None, hot: str = "sampling.temperature") -> None:
    """Raise ValueError for several samples of one text by greedy decoding. `hot`: the setting of the temperature."""
    if count > 1 and temperature == 0:
        raise ValueError(f"{key}={count} with {hot}=0 are equal {what}: leave {hot} out, or set {key}=1")


def default_of(schema: Any, name: str) -> Any:
    """The default of a setting."""
    (field,) = (field for field in dataclasses.fields(schema) if field.name == name)
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def describe_settings(schema: Any) -> tuple[SettingInfo, ...]:
    """The settings of a section, in order. Inner sections are included, without a range; fields marked OWN are not."""
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


def identity_settings(settings: Settings) -> dict[str, object]:
    """The settings of a section that are part of a run's identity; inner sections as dicts, without their FREE settings."""
    return {
        field.name: _plain(getattr(settings, field.name))
        for field in describe_settings(type(settings))
        if Mark.FREE not in field.marks
    }


def as_type(settings: Any, schema: type[S]) -> S:
    """The settings as an instance of a subclass, with its defaults for the fields that the base does not have.

    Raises ValueError if the subclass does not accept the values.
    """
    if isinstance(settings, schema):
        return settings
    return schema(**in_common(settings, schema))


def in_common(settings: Any, schema: Any) -> dict[str, Any]:
    """The fields of `settings` that `schema` has too, with their values."""
    names = {field.name for field in dataclasses.fields(schema)}
    return {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings) if field.name in names}


def _plain(value: object) -> object:
    if isinstance(value, Settings):
        return identity_settings(value)
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
