"""The fingerprint of an object that a Python call gave: a hash of its own code and state, the same in every process.

Own code is what no installed distribution holds: the cells of a notebook, a script, modules beside it. Functions that own code
calls count too, wherever they are. Code of installed packages counts by its name. The place of a line, comments, annotations
and the docstrings of classes do not count. Bytecode does, so another minor version of Python gives another fingerprint.
"""

import dataclasses
import dis
import functools
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

SHOWN = 16
"""Characters of a fingerprint: 64 bits."""
_PACKAGES = ("site-packages", "dist-packages")
_STDLIB = Path(sysconfig.get_paths()["stdlib"])
_OURS = __name__.partition(".")[0]
_GLOBAL_OPS = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"})
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
_CONSTANT = (tuple, frozenset, CodeType)
_NOT_CODE = frozenset(
    [
        "__module__",
        "__dict__",
        "__weakref__",
        "__annotations__",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "__doc__",
        "_abc_impl",
        "__abstractmethods__",
        "__slotnames__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__match_args__",
        "__firstlineno__",
        "__static_attributes__",
    ]
)
_MADE_BY_DATACLASS = frozenset(
    [
        "__init__",
        "__repr__",
        "__eq__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__hash__",
        "__replace__",
        "__getstate__",
        "__setstate__",
        "__setattr__",
        "__delattr__",
    ]
)


def fingerprint(*things: object) -> str:
    """`SHOWN` hexadecimal digits for these objects together."""
    walk = _Walk()
    for thing in things:
        walk.add(thing)
    return walk.hash.hexdigest()[:SHOWN]


def is_own_module(name: str | None) -> bool:
    """Whether a module is a user's own: the main program, or a file that no installed distribution holds."""
    if name is None or name == "__main__":
        return True
    top = name.partition(".")[0]
    if top == _OURS or top in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return name not in sys.modules
    return not (set(Path(file).parts) & set(_PACKAGES) or Path(file).is_relative_to(_STDLIB))


class _Walk:
    """Goes through an object and what it refers to, each once, in an order that depends on names and values alone."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []

    def add(self, thing: Any) -> None:
        if isinstance(thing, _PLAIN):
            return self._say("value", type(thing).__name__, repr(thing))
        # Constants of code may be one object or several equal ones, which depends on how the code was loaded.
        if not isinstance(thing, _CONSTANT):
            if id(thing) in self._seen:
                return self._say("again", str(self._seen[id(thing)]))
            self._seen[id(thing)] = len(self._seen)
            self._kept.append(thing)  # an id is taken again once its object is gone
        return self._add_new(thing)

    def _add_new(self, thing: Any) -> None:
        match thing:
            case ModuleType():
                self._module(thing)
            case CodeType():
                self._code(thing)
            case FunctionType():
                self._function(thing)
            case type():
                self._class(thing)
            case staticmethod() | classmethod() | MethodType():
                self._all("bound", thing.__func__, getattr(thing, "__self__", None))
            case property():
                self._all("property", thing.fget, thing.fset, thing.fdel)
            case functools.cached_property():
                self._all("cached", thing.func)
            case Enum():
                self._all("member", type(thing), thing.name)
            case list() | tuple():
                self._all(type(thing).__name__, len(thing), *thing)
            case set() | frozenset():
                self._say("set", *sorted(map(_in_set, thing)))
            case dict():
                self._all("dict", *(part for pair in thing.items() for part in pair))
            case _:
                self._other(thing)

    def _module(self, module: ModuleType) -> None:
        self._say("module", module.__name__)
        file = getattr(module, "__file__", None)
        if file and is_own_module(module.__name__) and Path(file).is_file():
            self._say(hashlib.sha256(Path(file).read_bytes()).hexdigest())

    def _code(self, code: CodeType) -> None:
        self._all("code", code.co_code, code.co_exceptiontable, code.co_flags, code.co_names, code.co_varnames)
        self._all("variables", code.co_freevars, code.co_cellvars)
        self._all("consts", *code.co_consts)

    def _function(self, function: FunctionType) -> None:
        self._say("function", str(function.__module__), function.__qualname__)
        if not is_own_module(function.__module__):
            return
        self._code(function.__code__)
        self._all("defaults", function.__defaults__, function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self._all("cell", cell.cell_contents)
            except ValueError:
                self._say("empty cell")
        for name in sorted(set(_globals_of(function.__code__))):
            if name in function.__globals__:
                self._all("global", name, function.__globals__[name])

    def _class(self, kind: type) -> None:
        self._say("class", kind.__module__, kind.__qualname__)
        if not is_own_module(kind.__module__):
            return None
        self._all("bases", *kind.__bases__)
        if issubclass(kind, Enum):
            return self._all("members", *(part for each in kind for part in (each.name, each.value)))
        left_out = _NOT_CODE
        if "__dataclass_fields__" in vars(kind):
            left_out |= _MADE_BY_DATACLASS
            for field in vars(kind)["__dataclass_fields__"].values():
                self._all("field", field.name, _or_none(field.default), _or_none(field.default_factory), field.init)
        for name, value in sorted(vars(kind).items()):
            if name not in left_out and not isinstance(value, MemberDescriptorType | GetSetDescriptorType):
                self._all("attribute", name, value)
        return None

    def _other(self, thing: Any) -> None:
        name = getattr(thing, "__qualname__", None)
        if isinstance(name, str):  # a builtin function, a method of C
            return self._say("named", str(getattr(thing, "__module__", None)), name)
        if type(thing).__module__ == "typing":
            return self._say("typing", repr(thing))
        try:
            made = thing.__reduce_ex__(4)
        except Exception:  # noqa: BLE001  what has no state that can be read, such as a lock
            return self._all("opaque", type(thing))
        if isinstance(made, str):
            return self._all("named", type(thing), made)
        make, args, state, items, pairs = (*made, None, None, None)[:5]
        self._all("object", type(thing), make, args, state)
        return self._all("content", list(items or ()), list(pairs or ()))

    def _all(self, word: str, *things: object) -> None:
        self._say(word, str(len(things)))
        for thing in things:
            self.add(thing)

    def _say(self, *words: str) -> None:
        for word in words:
            data = word.encode("utf-8", "surrogatepass")
            self.hash.update(b"%d:" % len(data) + data)


def _globals_of(code: CodeType) -> Iterator[str]:
    """The names of globals that a function and those inside it read or set."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBAL_OPS:
            yield str(instruction.argval)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _globals_of(const)


def _in_set(member: object) -> str:
    """What stands for a member of a set, whose order means nothing: its value, or the name of a function or class."""
    return str(getattr(member, "__qualname__", "")) or fingerprint(member)


def _or_none(default: object) -> object:
    return None if default is dataclasses.MISSING else default
