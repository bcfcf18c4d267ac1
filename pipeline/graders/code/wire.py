"""The messages between the processes of a code problem: between checker and child, and between tests and program.

The tests and the program run in separate processes and call each other. Plain values are copied. Every other object stays in
its process, and the other process gets a `Remote`, which forwards calls, attributes, items, iteration and conversion to text.
So every result that a program claims is a plain value, and the process of the tests compares it. A `Remote` equals no plain
value and has no arithmetic. If a call changes a list, dict or set argument in position, the caller's argument changes too.
Not covered: subclasses (only exact types and the usual subclasses of the standard library are copied); changes deep inside
arguments; the class of an exception that the other process defines, which arrives as its nearest built-in base class.
"""

import builtins
import codecs
import json
import operator
import os
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from fractions import Fraction
from typing import Any, NoReturn

MAX_OUTPUT_BYTES = 16 * 2**20
"""Limit of the standard output of one run, and of each file that it writes."""
MAX_MESSAGE_BYTES = 16 * 2**20
MAX_OBJECTS = 100_000
_READ_BYTES = 2**16

_SEQUENCES: dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_MAPPINGS = (dict, OrderedDict, Counter, defaultdict)
# Conversion to decimal digits takes time quadratic in their number.
_PLAIN: dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    int: ("int", lambda value: format(value, "x"), lambda text: int(text, 16)),
    float: ("float", float.hex, float.fromhex),
    complex: ("complex", lambda value: f"{value.real.hex()} {value.imag.hex()}",
              lambda text: complex(*map(float.fromhex, text.split()))),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    bytearray: ("bytes", bytearray.hex, bytes.fromhex),
    Fraction: ("fraction", lambda value: f"{value.numerator:x}/{value.denominator:x}",
               lambda text: Fraction(*(int(part, 16) for part in text.split("/")))),
    Decimal: ("decimal", str, Decimal),
}  # fmt: skip
_DECODERS = {name: decode for name, _, decode in _PLAIN.values()}
OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda function, *arguments, **named: function(*arguments, **named),
    "get": getattr,
    "set": setattr,
    "item": operator.getitem,
    "put": operator.setitem,
    "drop": operator.delitem,
    "len": len,
    "iter": iter,
    "next": next,
    "str": str,
    "repr": repr,
    "bool": bool,
    "same": lambda left, right: bool(left == right),
    "isinstance": lambda kind, value: isinstance(value, kind),
}


class TaskKind(StrEnum):
    """What a task runs, and the files that are sent with it."""

    SCRIPT = "script"  # a program alone: its content, standard input, standard output
    SUITE = "suite"  # tests against a program: content of the program, content of the tests, statement
    OUTPUT = "output"  # compares an output: tolerance and expected output, output, statement
    TESTS = "tests"  # whether tests can be read: their content, statement
    CELLS = "cells"  # the cells of a notebook in order: content, statement
    CASES = "cases"  # tests of cells, each by itself: content of the cells, content of the tests, statement
    PROBE = "probe"  # the protections in effect in a confined process: content, statement


class Statement(StrEnum):
    """The result that the process of the tests, or of a comparison, states at its end."""

    PASSED = "passed"
    FAILED = "failed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTask:
    """One run and its limits.

    `wall_seconds` may pass while the processes of the run have the processor or wait of their own accord. Time for which others
    have the processor counts too, unless `patience` is above 1: then the run may take that many times as long.
    """

    kind: TaskKind
    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    patience: float = 1.0

    @property
    def longest_seconds(self) -> float:
        """The wall time after which the run is late in any case."""
        return self.wall_seconds * self.patience


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramReport:
    """How a run ended. Seconds are those of wall time.

    `began` is false if the sandbox could not be set up. `status` is the exit code of the program, negative for a signal, None
    if the child ended it; `last_status` that of the process that ends the run. `exhausted`: the program exceeded its limit of
    processor time, threads or files. `unseen`: the machine did not show whether it keeps a limit, so the run was ended.
    `deprived_seconds`: how long others had the processor that the run could have used. None: the kernel does not count this.
    """

    began: bool
    status: int | None
    exhausted: bool
    late: bool
    unseen: bool
    last_status: int | None
    wall_seconds: float
    deprived_seconds: float | None


def text_pieces(descriptor: int, start: int = 0, *, errors: str = "replace") -> Iterator[str]:
    """The UTF-8 text of an open file in pieces, from the byte `start` on."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    while data := os.pread(descriptor, _READ_BYTES, start):
        start += len(data)
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


class OtherSideEndedError(BaseException):
    """The other process has ended or violated the protocol. It is a BaseException so that no `except Exception` hides it."""


def _asks(operation: str) -> Callable[..., Any]:
    """A method of a `Remote` that the other process executes."""
    return lambda self, *arguments, **named: self._peer.ask(operation, self, *arguments, **named)


class Remote:
    """An object of the other process."""

    __slots__ = ("_key", "_peer")

    def __init__(self, peer: "Peer", key: int) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_key", key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._peer.ask("get", self, name)

    def __len__(self) -> int:
        return int(self._peer.ask("len", self))

    __call__, __setattr__, __iter__, __next__ = map(_asks, ("call", "set", "iter", "next"))
    __getitem__, __setitem__, __delitem__ = map(_asks, ("item", "put", "drop"))
    __str__, __repr__, __bool__ = map(_asks, ("str", "repr", "bool"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remote) and (self._key == other._key or bool(self._peer.ask("same", self, other)))

    def __hash__(self) -> int:
        return hash(self._key)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Remote) and bool(self._peer.ask("isinstance", self, instance))


class Peer:
    """One end of the connection. It sends requests, and answers requests while it waits. `serves` decides which are allowed."""

    def __init__(self, reading: int, writing: int, serves: Callable[[str, Any, tuple[Any, ...]], bool]) -> None:
        self._reading = open(reading, "rb", _READ_BYTES, closefd=False)  # noqa: SIM115  open as long as this end
        self._writing = writing
        self._serves = serves
        self._objects: list[Any] = []
        self.ended = False

    def export(self, value: object) -> int:
        """Make an object available to the other side. Returns its key. Raises MemoryError after `MAX_OBJECTS` objects."""
        if len(self._objects) >= MAX_OBJECTS:
            raise MemoryError
        self._objects.append(value)
        return len(self._objects) - 1

    def ask(self, operation: str, target: Remote, *arguments: Any, **named: Any) -> Any:
        """Let the other side execute an operation, and return the result.

        Raises the exception that the operation raises there, or OtherSideEndedError.
        """
        given = [self._packed(value) for value in arguments]
        request = {"do": operation, "on": target._key, "args": given}
        self._send(request | ({"named": {name: self._packed(value) for name, value in named.items()}} if named else {}))
        while True:
            message = self._receive()
            if "do" in message:
                self._answer(message)
                continue
            for position, changed in message.get("changed", ()):
                _overwrite(arguments[position], self._unpacked(changed))
            if "raised" in message:
                self._raise(message["raised"], message["text"])
            return self._unpacked(message["value"])

    def serve(self) -> None:
        """Execute the requests of the other side until it ends."""
        with suppress(OtherSideEndedError):
            while True:
                self._answer(self._receive())

    def _answer(self, request: dict[str, Any]) -> None:
        try:
            target = self._objects[request["on"]]
            arguments = tuple(map(self._unpacked, request["args"]))
            if not self._serves(request["do"], target, arguments):
                raise AttributeError(request["do"])
            named = {name: self._unpacked(value) for name, value in request.get("named", {}).items()}
            value = OPERATIONS[request["do"]](target, *arguments, **named)
            packed = [(at, self._packed(each)) for at, each in enumerate(arguments) if type(each) in (list, dict, set)]
            changed = [[at, now] for at, now in packed if now != request["args"][at]]
            reply = {"value": self._packed(value)} | ({"changed": changed} if changed else {})
        except OtherSideEndedError:
            raise
        except BaseException as error:  # noqa: BLE001  every exception is raised again on the caller's side
            reply = {"raised": builtin_names(error)[0], "text": text_of(error)}
        self._send(reply)

    def _raise(self, name: object, text: object) -> NoReturn:
        kind = getattr(builtins, str(name), None)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            # SystemExit and similar exceptions end a test run, and so does a name that is not an exception.
            self._end()
        raise kind(str(text)) if not issubclass(kind, UnicodeError) else ValueError(str(text))

    def _end(self) -> NoReturn:
        self.ended = True
        raise OtherSideEndedError

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        if len(data) > MAX_MESSAGE_BYTES:
            self._end()
        try:
            while data:
                data = data[os.write(self._writing, data) :]
        except OSError:
            self._end()

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._reading.readline(MAX_MESSAGE_BYTES)
            message = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError, RecursionError):
            self._end()
        return message if isinstance(message, dict) else self._end()

    def _packed(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind in _PLAIN:
            plain, encode, _ = _PLAIN[kind]
            return [plain, encode(value)]
        if isinstance(value, Enum) and isinstance(value, int | str):
            return self._packed(value.value)
        if kind in _SEQUENCES.values():
            return [kind.__name__, *map(self._packed, value)]
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return ["tuple", *map(self._packed, value)]
        if kind in _MAPPINGS:
            return ["dict", *([self._packed(key), self._packed(item)] for key, item in value.items())]
        if kind is Remote and value._peer is self:
            return ["yours", value._key]
        return ["mine", self.export(value)]

    def _unpacked(self, packed: Any) -> Any:
        if not isinstance(packed, list):
            return packed
        match packed:
            case [str(name), str(text)] if name in _DECODERS:
                return _DECODERS[name](text)
            case ["dict", *pairs]:
                return {self._unpacked(key): self._unpacked(item) for key, item in pairs}
            case ["yours", int(key)]:
                return self._objects[key]
            case ["mine", int(key)]:
                return Remote(self, key)
            case [str(name), *items]:
                return _SEQUENCES[name](map(self._unpacked, items))
            case _:
                raise ValueError("not a packed value")


def _overwrite(old: Any, new: Any) -> None:
    """Replace the content of a list, dict or set. Raises TypeError if the types differ."""
    if type(old) is not type(new):
        raise TypeError("an argument changed its type")
    old.clear()
    (old.extend if isinstance(old, list) else old.update)(new)


def builtin_names(error: BaseException) -> list[str]:
    """The names of the built-in classes of an exception, nearest first."""
    return [base.__name__ for base in type(error).__mro__ if getattr(builtins, base.__name__, None) is base]


def text_of(value: object) -> str:
    """An object as text. Empty if its `__str__` raises."""
    with suppress(Exception):
        return str(value)
    return ""
