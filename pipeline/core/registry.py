"""Registries that map a name on the command line to an implementation, built-in or from an installed plug-in.

A distribution offers a plug-in as an entry point, without any change in this package:

    [project.entry-points."stepvalue.estimators"]
    halves = "my_package.halves:Halves"

Only built-in names and entry points are resolved, so a configuration cannot name arbitrary code. An error about a plug-in is
one line that names the distribution and the entry point. An implementation is loaded when it is first used.

In one process, `Registry.offer` adds an object that a Python call gave. It is then used like a plug-in.
"""

import dataclasses
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from pipeline.core.errors import PluginError, StepvalueError, UsageError, first_line
from pipeline.core.suggestions import choice_hint

T = TypeVar("T")
DISTRIBUTION = "stepvalue"
GIVEN = "object "
"""How the text of a `GivenObject` begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Where a plug-in comes from."""

    distribution: str
    version: str
    entry_point: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} ({self.entry_point})"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenObject:
    """An implementation that a Python call gave as an object.

    `loaded`: what `Registry.load` returns for it, its class where implementations are classes. `make`: an instance for one use,
    from settings. `where`: module and name of its class. `code`: see `core.code_of`."""

    made: Any
    loaded: Any
    make: Callable[[Any], Any]
    where: str
    code: str

    def __str__(self) -> str:
        return f"{GIVEN}{self.where} {self.code} (given in Python, cannot be repeated elsewhere)"


Source = Plugin | GivenObject
"""Where an implementation comes from that is not built in. Its text is recorded in `run.json`."""


def is_given(source: object) -> bool:
    """Whether the recorded text of a `Source` is that of an object."""
    return str(source).startswith(GIVEN)


class Registry(Generic[T]):
    """The implementations of one kind, by name. `T` is their type: a class, or a record that describes one."""

    def __init__(
        self,
        group: str,
        *,
        noun: str,
        setting: str,
        ours: Mapping[str, str],
        needs: Sequence[str],
        parts: Collection[str] = (),
        answers: str = "",
    ) -> None:
        """`group`: name of the entry points after `stepvalue.`; `noun` and `setting` (`estimator.name`) are for messages.

        `ours`: name of a built-in implementation -> `module:attribute`, in the order of listings. A second `module:attribute`
        after a blank names its settings class, if that loads faster than the implementation. `needs`: attributes that every
        implementation must have. `parts`: attributes that have methods of their own. `answers`: `module:attribute` of a mapping
        from the name of a method to a function that checks its result. The function takes the result and the arguments of the
        method, and returns what is wrong with the result, or an empty text.
        """
        self.group = f"{DISTRIBUTION}.{group}"
        self.noun = noun
        self.setting = setting
        self.ours = {name: where.split()[0] for name, where in ours.items()}
        self._settings = {name: where.split()[1] for name, where in ours.items() if " " in where}
        self._needs = tuple(needs)
        self._parts = frozenset(parts)
        self._answers = answers
        self._loaded: dict[str, T] = {}
        self._given: dict[str, GivenObject] = {}
        self._uses: dict[str, int] = {}
        self._offering = threading.Lock()

    @cached_property
    def _foreign(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in _installed().select(group=self.group):
            found.setdefault(point.name, []).append(point)
        return found

    def names(self) -> list[str]:
        """All names: the built-in ones first, in their order, then those of plug-ins and objects in alphabetical order."""
        return [*self.ours, *sorted({*self._foreign, *self._given} - self.ours.keys())]

    def plugin(self, name: str) -> Source | None:
        """The plug-in or object that a name belongs to; None if it is built in. Raises UsageError for an unknown or ambiguous
        name."""
        if name in self._given:
            return self._given[name]
        point = self._point(name)
        return None if point is None else _plugin(point)

    def load(self, name: str) -> T:
        """The implementation of this name.

        Raises UsageError, in one line, if the name is unknown or claimed twice, or if the implementation cannot be imported or
        lacks a required attribute.
        """
        if name in self._given:
            given: T = self._given[name].loaded
            return given
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def settings(self, name: str) -> Any:
        """The settings dataclass of an implementation; None if it has no settings. Raises UsageError as `load` does."""
        if name in self._settings and self.plugin(name) is None:
            return _attribute(self._settings[name])
        loaded: Any = self.load(name)
        return getattr(loaded, "Config", None)

    def our_settings(self, *, named: bool = False) -> dict[str, Any]:
        """The settings dataclasses of the built-in implementations that have settings, also if a plug-in claims the same name.

        `named`: only those whose settings class is named in `ours`, so that no implementation is loaded.
        """
        found = {name: _attribute(where) for name, where in self._settings.items()}
        if not named:
            own = {
                name: getattr(_attribute(self.ours[name]), "Config", None) for name in self.ours if name not in found
            }
            found |= {name: config for name, config in own.items() if config is not None}
        return {name: found[name] for name in self.ours if name in found}

    def create(self, name: str, settings: Any) -> Any:
        """An instance of an implementation that is a class, made from its settings and guarded (see `guard`).

        Raises UsageError as `load` does.
        """
        if name in self._given:
            with self.blame(name, "__init__"):
                return self.guard(name, self._given[name].make(settings))
        found: Any = self.load(name)
        with self.blame(name, "__init__"):
            made = found(settings)
        return self.guard(name, made)

    def guard(self, name: str, made: Any) -> Any:
        """A proxy for an instance of a plug-in. A built-in instance is returned unchanged.

        The proxy turns every error other than a StepvalueError into a PluginError that names the plug-in. An invalid result
        also raises PluginError. Unexpected errors of built-in implementations are bugs of this package and are not wrapped.
        """
        plugin = self.plugin(name)
        if plugin is None:
            return made
        answers = _attribute(self._answers) if self._answers else {}
        return _Guarded(made, plugin, f"{self.noun} {name}", self._parts, answers)

    def blame(self, name: str, doing: str) -> AbstractContextManager[None]:
        """A context in which errors of a plug-in become PluginErrors, as `guard` does."""
        plugin = self.plugin(name)
        return nullcontext() if plugin is None else _plugin_failure(f"{self.noun} {name} of {plugin}", doing)

    @property
    def given(self) -> Mapping[str, GivenObject]:
        """The objects that are offered now, by name."""
        return dict(self._given)

    @contextmanager
    def offer(self, name: str, given: GivenObject) -> Iterator[None]:
        """Resolve a name to an object within the context, in this process and in all of its threads.

        Raises UsageError if the name is that of a built-in implementation or a plug-in, or stands for another object at the
        same time, and if the object cannot be used.
        """
        self._refuse_unusable(given.loaded, f"{self.noun} {given.where}")
        if name in self.ours or name in self._foreign:
            raise UsageError(
                f"{self.noun} {given.where}: there is another {self.noun} {name}: give your class another name"
            )
        with self._offering:
            other = self._given.setdefault(name, given)
            if str(other) != str(given) or other.loaded is not given.loaded:
                raise UsageError(
                    f"{self.noun} {name}: another call of this process is using {other.where} under the same name: wait until "
                    "it ends, or give your class another name"
                )
            self._uses[name] = self._uses.get(name, 0) + 1
        try:
            yield
        finally:
            with self._offering:
                self._uses[name] -= 1
                if not self._uses[name]:
                    del self._uses[name], self._given[name]

    def _load(self, name: str) -> T:
        point = self._point(name)
        if point is None:
            found: T = _attribute(self.ours[name])
            return found
        where = f"{self.noun} {name} of {_plugin(point)}"
        try:
            found = point.load()
        except (Exception, SystemExit) as error:  # the import of a plug-in may raise anything
            raise UsageError(f"{where} cannot be imported: {_in_a_line(error)}") from error
        self._refuse_unusable(found, where)
        return found

    def _refuse_unusable(self, found: Any, where: str) -> None:
        unwritten = getattr(found, "__abstractmethods__", ())
        lacking = [need for need in self._needs if need in unwritten or not hasattr(found, need)]
        if lacking:
            raise UsageError(f"{where} cannot be used: it has no {' and no '.join(lacking)}")
        config = getattr(found, "Config", None)
        if config is not None and not (dataclasses.is_dataclass(config) and hasattr(config, "SECTION")):
            raise UsageError(
                f"{where} cannot be used: its Config is not a dataclass derived from one of `pipeline.config`"
            )

    def _point(self, name: str) -> EntryPoint | None:
        points = self._foreign.get(name, [])
        if name in self.ours and points:
            raise UsageError(
                f"{self.noun} {name} is built into {DISTRIBUTION}, but {_plugin(points[0])} claims the same name: uninstall "
                f"{_plugin(points[0]).distribution} or rename its entry point"
            )
        if len(points) > 1:
            both = " and ".join(str(_plugin(point)) for point in points)
            raise UsageError(f"{self.noun} {name} is claimed by {both}: uninstall one of them")
        if name not in self.ours and not points:
            raise UsageError(
                f"{self.setting}={name}: there is no such {self.noun} here: {choice_hint(name, self.names())} (or install the "
                "plug-in that provides it)"
            )
        return points[0] if points else None


@cache
def _installed() -> Any:
    """The entry points of all installed distributions, read once."""
    return entry_points()


def _attribute(where: str) -> Any:
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)


def _plugin(point: EntryPoint) -> Plugin:
    name = point.dist.metadata["Name"] if point.dist else "an unknown distribution"
    version = point.dist.version if point.dist else "?"
    return Plugin(distribution=name, version=version, entry_point=f"{point.group}: {point.name} = {point.value}")


def _in_a_line(error: BaseException) -> str:
    name, said = type(error).__name__, first_line(error)
    return name if said == name else f"{name}: {said}"


@contextmanager
def _plugin_failure(whose: str, doing: str) -> Iterator[None]:
    try:
        yield
    except StepvalueError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"{whose} failed in {doing}: {_in_a_line(error)}") from error


class _Guarded:
    """The proxy of `Registry.guard`. It looks up methods at each call, so an implementation may change, and guards every
    step of a generator."""

    def __init__(
        self,
        inner: Any,
        plugin: Source,
        name: str,
        parts: Collection[str] = (),
        answers: Mapping[str, Callable[..., str]] = MappingProxyType({}),
    ) -> None:
        self._inner = inner
        self._answers = answers
        self._plugin = plugin
        self._name = name
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        with self._blamed(name):
            found = getattr(self._inner, name)
        if name in self._parts:
            return None if found is None else _Guarded(found, self._plugin, self._name)
        if isinstance(found, type) or not callable(found):
            return found
        if inspect.isasyncgenfunction(found):
            return self._stream(name, found)
        if inspect.iscoroutinefunction(found):
            return self._awaited(name, found)
        return self._called(name, found)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_reason: object) -> None:
        self.close()

    def _called(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._blamed(name):
                found = method(*args, **kwargs)
            return self._checked(name, found, args, kwargs)

        return call

    def _awaited(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            with self._blamed(name):
                found = await method(*args, **kwargs)
            return self._checked(name, found, args, kwargs)

        return call

    def _checked(self, name: str, found: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of a method. Raises PluginError if it is impossible."""
        with self._blamed(name):
            wrong = self._answers[name](found, *args, **kwargs) if name in self._answers else ""
        if wrong:
            raise PluginError(f"{self._name} of {self._plugin} failed in {name}: {wrong}")
        return found

    def _stream(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            with self._blamed(name):
                async for each in method(*args, **kwargs):
                    yield each

        return call

    def _blamed(self, doing: str) -> AbstractContextManager[None]:
        return _plugin_failure(f"{self._name} of {self._plugin}", doing)
