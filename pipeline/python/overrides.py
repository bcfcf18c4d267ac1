"""Arguments of a Python call as settings of the command line, which are composed and checked as those are, and as objects.

{"sampling.temperature": 0.8, "policy": {"model": "org/name"}} -> ["sampling.temperature=0.8", "policy.model='org/name'"]
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from os import PathLike, path
from typing import TYPE_CHECKING, Any

from pipeline.cli.command import Command
from pipeline.config.words import quote
from pipeline.core.errors import UsageError
from pipeline.core.suggestions import choice_hint, nearest_keys

if TYPE_CHECKING:
    from pipeline.runtime.objects import Given

FORMAT_NAME = "name"
"""What names the format in a dict of `export`."""
_SECTIONS = ("policy", "estimator", "grader", "scorer", "judge", "verifier", "search", "grow")
"""The arguments that take an object."""
_MODELS = ("policy", "scorer")
"""Those of which a text may be the name or folder of a model."""
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_SHOWN = 60
"""Characters of a value that a message quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting by its dotted key. `said`: how the call gave it, for messages."""

    key: str
    value: object
    said: str

    @classmethod
    def of(cls, key: str, name: str, value: object) -> "Setting":
        """The setting that the argument `name` stands for."""
        return cls(key=key, value=value, said=said(name, value))


def settings_in(settings: Mapping[str, Any]) -> Iterator[Setting]:
    """The settings of keyword arguments, in order. Keys may have dots, and values may be mappings of further keys.

    Raises UsageError, which names the key, for one that is no name.
    """
    for name, value in settings.items():
        yield from _flat((name,), value)


def named_settings(arguments: Mapping[str, Any]) -> Iterator[Setting]:
    """The settings that arguments stand for; None and objects stand for none. A text for a section with a model is the name of
    an implementation (`oracle`), else the name or folder of a model."""
    from pipeline.runtime.objects import REGISTRIES

    for name, value in arguments.items():
        if value is None or (name in _SECTIONS and is_object(value)):
            continue
        if name in _MODELS and not isinstance(value, Mapping) and value not in (names := REGISTRIES[name][1].names()):
            if isinstance(value, str) and nearest_keys(value, names) and not path.exists(value):
                hint = f"{choice_hint(value, names)}; or give a model as {{'model': {value!r}}}"
                raise UsageError(f"{name}={value!r}: there is no such {name}, {hint}")
            yield Setting.of(f"{name}.model", name, value)
        else:
            yield from settings_in({name: value})


def settings_with(objects: "tuple[Given, ...]", settings: Mapping[str, Any]) -> Iterator[Setting]:
    """The settings of objects, and those of keyword arguments that are none. Raises UsageError for a key that is no name."""
    for each in objects:
        from pipeline.runtime.objects import settings_of

        for key, value in settings_of(each).items():
            yield Setting(key=key, value=value, said=f"{each.section}={type(each.source.made).__name__}(...)")
    yield from settings_in(
        {key: value for key, value in settings.items() if not (key in _SECTIONS and is_object(value))}
    )


def with_options(settings: Iterable[Setting], command: Command) -> Iterator[Setting]:
    """The settings of a command. One that names an implementation chooses the option of its section, with what belongs to it.

    Where a command keeps what is not named (`relabel`), the setting stays as it is.
    """
    from pipeline.cli.options import option_for, usual_options
    from pipeline.runtime.objects import REGISTRIES

    usual = usual_options(command)
    choosing = {
        f"{section}.{base.CHOSEN_BY}": section
        for section, (base, _) in REGISTRIES.items()
        if usual.get(section, "None") != "None"
    }
    for each in settings:
        section = choosing.get(each.key)
        if section is not None and isinstance(each.value, str):
            yield replace(each, key=section, value=option_for(section, each.value, usual[section]))
        else:
            yield each


def overrides_of(settings: Iterable[Setting]) -> list[str]:
    """One `key=value` for each setting, in order.

    Raises UsageError for a value that no setting can have, and for a setting that is given twice with different values.
    """
    found: dict[str, tuple[Setting, str]] = {}
    for each in settings:
        text = written(each.key, each.value)
        before, known = found.setdefault(each.key, (each, text))
        if text != known:
            raise UsageError(f"{each.key} is given twice, as {before.said} and as {each.said}: leave one of them out")
    return [f"{key}={text}" for key, (_, text) in found.items()]


def said(name: str, value: object) -> str:
    """A keyword argument as it is written in Python; of a long value, the beginning."""
    text = repr(value)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"{name}={text}" if name.isidentifier() else f"{{{name!r}: {text}}}"


def written(key: str, value: object) -> str:
    """A value in the grammar of the command line. Raises UsageError, which names the key."""
    if value is None:
        return "null"
    if isinstance(value, Enum):
        return written(key, value.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(float(value) if isinstance(value, float) else int(value))  # of NumPy's subclasses too
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, PathLike):
        return quote(str(value))
    if isinstance(value, list | tuple):
        return f"[{','.join(written(key, each) for each in value)}]"
    if hasattr(value, "item"):  # a scalar of NumPy
        return written(key, value.item())
    raise UsageError(
        f"{key}: a setting is text, a number, true or false, None, or a list of them, not {type(value).__name__}"
    )


def objects_of(arguments: Mapping[str, Any]) -> "tuple[Given, ...]":
    """The objects among arguments, by section. Raises UsageError for a value that is none of a section's kind."""
    found = {name: arguments[name] for name in _SECTIONS if is_object(arguments.get(name))}
    if not found:
        return ()
    from pipeline.runtime.objects import given

    return tuple(given(section, value) for section, value in found.items())


def is_object(value: object) -> bool:
    """Whether an argument is an object, and not a name, a folder or settings."""
    return value is not None and not isinstance(value, str | PathLike | Mapping)


def offered_here(objects: "tuple[Given, ...]") -> AbstractContextManager[None]:
    """The registries of this process resolve the names of the objects within the context. Raises UsageError."""
    if not objects:
        return nullcontext()
    from pipeline.runtime.objects import offered

    return offered(objects)


def format_settings(format: object) -> tuple[object, list[Setting]]:
    """A format of `export`, and the settings of a dict that chooses it: `{"name": "preference", "margin": 0.2}`.

    Raises UsageError for a dict that names no format, and for settings of a format that has none."""
    if not isinstance(format, Mapping):
        return format, []
    from pipeline.export.registry import EXPORTS

    name = format.get(FORMAT_NAME)
    if not isinstance(name, str):
        raise UsageError(
            f"format: the dict does not say which format it is for: add {FORMAT_NAME!r}, one of {', '.join(EXPORTS.names())}"
        )
    own = {key: value for key, value in format.items() if key != FORMAT_NAME}
    section = getattr(EXPORTS.settings(name), "SECTION", "")
    if own and not section:
        raise UsageError(f"format: {name} has no settings of its own: give {', '.join(map(str, own))} beside it")
    return name, [Setting.of(f"{section}.{key}", "format", value) for key, value in own.items()]


@contextmanager
def offered_format(format: object) -> Iterator[str]:
    """The name of an export format: a text itself, or that of an object, which the registry of this process resolves meanwhile.

    Raises UsageError for an object that is no format."""
    if isinstance(format, str):
        yield format
        return
    from pipeline.core.code_of import with_code
    from pipeline.export.formats.base import Format
    from pipeline.export.registry import EXPORTS

    kind = type(format)
    if not isinstance(format, Format) and not callable(getattr(format, "plan", None)):
        raise UsageError(f"format: give a name, a Format or an Exporter, not {kind.__name__}")
    name = getattr(getattr(format, "Config", None), "SECTION", "") or f"own_{kind.__name__.lower()}"
    with EXPORTS.offer(name, with_code(format, format, lambda _: format)):
        yield name


def _flat(names: tuple[object, ...], value: object) -> Iterator[Setting]:
    *above, name = names
    if not isinstance(name, str) or not _KEY.fullmatch(name):
        before = "".join(f"{each}." for each in above)
        raise UsageError(f"{before}{name!r} is no name of a setting: write for example 'sampling.temperature'")
    if isinstance(value, Mapping):
        for inner, part in value.items():
            yield from _flat((*names, inner), part)
        return
    first, *inner_names = map(str, names)
    nested: object = value
    for each in reversed(inner_names):
        nested = {each: nested}
    yield Setting(key=".".join([first, *inner_names]), value=value, said=said(first, nested))
