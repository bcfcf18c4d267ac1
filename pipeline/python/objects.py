"""Finds the objects among the arguments of a Python call from names and settings."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Any

from pipeline.core.errors import UsageError
from pipeline.python.overrides import Setting, settings_in

if TYPE_CHECKING:
    from pipeline.runtime.objects import Given, Packed

SECTIONS = ("policy", "estimator", "grader", "scorer", "judge", "verifier", "search", "grow")
"""The arguments that take an object."""


def objects_of(arguments: Mapping[str, Any]) -> "tuple[Given, ...]":
    """The objects among arguments, by section. Raises UsageError for a value that is none of a section's kind."""
    found = {name: arguments[name] for name in SECTIONS if is_object(arguments.get(name))}
    if not found:
        return ()
    from pipeline.runtime.objects import given

    return tuple(given(section, value) for section, value in found.items())


def is_object(value: object) -> bool:
    """Whether an argument is an object, and not a name, a folder or settings."""
    return value is not None and not isinstance(value, str | PathLike | Mapping)


def settings_with(objects: "tuple[Given, ...]", settings: Mapping[str, Any]) -> Iterator[Setting]:
    """The settings of keyword arguments, in which those of the objects stand for the objects. The others come after them.

    Raises UsageError for a key that is no name."""
    for each in objects:
        from pipeline.runtime.objects import settings_of

        for key, value in settings_of(each).items():
            yield Setting(key=key, value=value, said=f"{each.section}={type(each.source.made).__name__}(...)")
    yield from settings_in(
        {key: value for key, value in settings.items() if not (key in SECTIONS and is_object(value))}
    )


def sent(objects: "tuple[Given, ...]") -> "Packed | None":
    """The objects for another process; None without any. Raises UsageError for one that cannot be pickled."""
    if not objects:
        return None
    from pipeline.runtime.objects import packed

    return packed(objects)


def offered_here(objects: "tuple[Given, ...]") -> AbstractContextManager[None]:
    """The registries of this process resolve the names of the objects within the context. Raises UsageError."""
    if not objects:
        return nullcontext()
    from pipeline.runtime.objects import offered

    return offered(objects)


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
