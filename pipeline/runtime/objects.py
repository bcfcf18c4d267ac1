"""Implementations that a Python call gave as objects, on their way to the processes of a run, and in the registries there.

An object is pickled by value where its class is of a notebook or a script, else by the name of its module. Only the caller, the
process that labels for it, the workers of that process's private Ray and their children exchange these bytes. Nothing is ever
unpickled that a run directory or a data set holds.
"""

import base64
import copy
import io
import json
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial
from typing import Any, Self, get_type_hints

from pipeline.config.fields import ChosenSettings, identity_settings
from pipeline.config.grow import PickerConfig
from pipeline.config.judge import JudgeConfig
from pipeline.config.label import EstimatorConfig, GraderConfig, PolicyConfig
from pipeline.config.score import ScorerConfig
from pipeline.config.search import SearchConfig
from pipeline.config.verify import VerifierConfig
from pipeline.core.code_of import with_code
from pipeline.core.errors import StepvalueError, UsageError, first_line
from pipeline.core.registry import GivenObject, Registry
from pipeline.engines.registry import ENGINES
from pipeline.estimators.registry import ESTIMATORS
from pipeline.graders.registry import GRADERS
from pipeline.judges.registry import JUDGES
from pipeline.pickers.registry import PICKERS
from pipeline.scorers.registry import SCORERS
from pipeline.searches.registry import SEARCHES
from pipeline.verifiers.registry import VERIFIERS

REGISTRIES: Mapping[str, tuple[type[ChosenSettings], Registry[Any]]] = {
    "policy": (PolicyConfig, ENGINES),
    "estimator": (EstimatorConfig, ESTIMATORS),
    "grader": (GraderConfig, GRADERS),
    "scorer": (ScorerConfig, SCORERS),
    "judge": (JudgeConfig, JUDGES),
    "verifier": (VerifierConfig, VERIFIERS),
    "search": (SearchConfig, SEARCHES),
    "grow": (PickerConfig, PICKERS),
}
"""The sections of settings that an object may stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An object for a section, under the name that its settings have. `source`: what registries are given and the run records,
    as the process of the call knows it."""

    section: str
    name: str
    source: GivenObject


def given(section: str, value: Any) -> Given:
    """An object, or a class with default settings, for a section. Raises UsageError for what is neither."""
    base, registry = REGISTRIES[section]
    kind = value if isinstance(value, type) else type(value)
    made = copy.copy(value)
    if isinstance(value, type) and hasattr(value, "Config"):
        try:
            made = value(value.Config())
        except Exception as error:
            raise UsageError(f"{section}: {kind.__name__} cannot be made without settings: {_named(error)}") from error
    settings: Any = getattr(made, "settings", None)
    if not isinstance(settings, base):
        raise UsageError(
            f"{section}: give a name, a dict of settings, or an object of a class with `settings` of {base.__name__} and the "
            f"methods of {_article(registry.noun)}, not {kind.__name__}"
        )
    name = settings.implementation
    if name in registry.ours or not name.isidentifier():
        # The class has the settings of another one.
        name = "".join(f"_{each.lower()}" if each.isupper() else each for each in kind.__name__).lstrip("_")
        made.settings = copy.copy(settings)
        setattr(made.settings, base.CHOSEN_BY, name)
    return Given(section=section, name=name, source=with_code(made, kind, partial(_with_settings, made)))


def settings_of(each: Given) -> dict[str, Any]:
    """The settings of an object by dotted key, those without a default value, as a call of `label` would give them."""
    return {each.section: each.name, **dict(_changed(each.section, each.source.made.settings))}


@contextmanager
def offered(objects: Sequence[Given]) -> Iterator[None]:
    """The registries resolve the names of the objects within the context. Raises UsageError for an object that cannot be
    used."""
    with ExitStack() as stack:
        for each in objects:
            stack.enter_context(REGISTRIES[each.section][1].offer(each.name, each.source))
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Objects, and settings that may be of their classes, as bytes. `paths`: where their modules may be found."""

    pickled: bytes
    paths: tuple[str, ...]

    @property
    def line(self) -> bytes:
        """This as one line of text, for the standard input of a child."""
        return json.dumps([base64.b64encode(self.pickled).decode(), self.paths]).encode()

    @classmethod
    def of_line(cls, line: bytes) -> Self:
        """The inverse of `line`."""
        pickled, paths = json.loads(line)
        return cls(pickled=base64.b64decode(pickled), paths=tuple(paths))

    def unpacked(self) -> tuple[tuple[Given, ...], Any]:
        """The objects and the settings. Raises UsageError if they cannot be loaded in this process."""
        import cloudpickle

        # At the end: no module of the caller takes the place of a library.
        sys.path += [path for path in self.paths if path not in sys.path]
        try:
            annotations, objects, config = cloudpickle.loads(self.pickled)
        except StepvalueError:
            raise
        except Exception as error:
            raise UsageError(
                f"an object that was given in Python cannot be loaded in the process that labels: {_named(error)}"
            ) from error
        for kind, hints in annotations.items():
            kind.__annotations__ = hints
        return objects, config


def packed(objects: Sequence[Given], config: object = None) -> Packed:
    """Raises UsageError for an object that cannot be pickled."""
    annotations = {kind: hints for each in objects for kind, hints in _resolved(type(each.source.made.settings))}
    try:
        pickled = _pickled((annotations, tuple(objects), config))
    except Exception as error:
        names = " and ".join(each.section for each in objects)
        raise UsageError(
            f"{names}: the object cannot be sent to the process that labels: {_named(error)}. Open files, locks and "
            "connections in the methods that use them"
        ) from error
    return Packed(pickled=pickled, paths=tuple(path for path in sys.path if path) if objects else ())


def _pickled(content: object) -> bytes:
    import cloudpickle

    # cloudpickle 3.1 copies the mark of a field without a default, and a copy of it is taken for a default.
    table = ChainMap({type(MISSING): lambda _: "MISSING"}, cloudpickle.Pickler.dispatch_table)
    pickler: Any = type("Pickler", (cloudpickle.Pickler,), {"dispatch_table": table})
    file = io.BytesIO()
    pickler(file).dump(content)
    return file.getvalue()


def objects_here() -> tuple[Given, ...]:
    """The objects that the registries of this process resolve now."""
    return tuple(
        Given(section=section, name=name, source=source)
        for section, (_, registry) in REGISTRIES.items()
        for name, source in registry.given.items()
    )


def _with_settings(made: Any, settings: Any) -> Any:
    """An instance for one use. An object that holds more than its settings is copied: nobody knows what it is made from.

    Raises UsageError if the settings of such an object would change what a run is."""
    more = sorted(getattr(made, "__dict__", {}).keys() - {"settings"})
    if not more:
        return type(made)(settings)
    if identity_settings(made.settings) != identity_settings(settings):
        raise UsageError(
            f"{settings.SECTION}: the object holds {', '.join(more)} besides its settings, so these can only be changed in the "
            "object itself"
        )
    copied = copy.deepcopy(made)
    copied.settings = settings
    return copied


def _changed(prefix: str, settings: Any) -> Iterator[tuple[str, Any]]:
    chosen_by = getattr(settings, "CHOSEN_BY", "")
    for field in fields(settings):
        value = getattr(settings, field.name)
        usual = field.default_factory() if callable(field.default_factory) else field.default
        if field.name == chosen_by or value == usual:
            continue
        key = f"{prefix}.{field.name}"
        if is_dataclass(value):
            yield from _changed(key, value)
        else:
            yield key, value


def _resolved(kind: type) -> Iterator[tuple[type, dict[str, Any]]]:
    """The annotations of the classes that are sent by value, where they are texts: other processes cannot resolve these."""
    for each in kind.__mro__:
        texts = {name for name, hint in vars(each).get("__annotations__", {}).items() if isinstance(hint, str)}
        if texts and each.__module__ == "__main__":
            hints = get_type_hints(each, include_extras=True)
            yield each, {name: hints[name] for name in vars(each)["__annotations__"]}


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
