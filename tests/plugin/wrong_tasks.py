"""Kinds of run that are wrong, each in one way: `CountTokens` with a member that is another one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from pipeline.config.task import TaskConfig
from pipeline.core.errors import EngineDied
from pipeline.core.records import Int64
from pipeline.core.table import TABLES, Table
from tests.plugin.count_tokens import CountTokens, StepTokens


class _Keyless(NamedTuple):
    step_index: int


class _Nameless(NamedTuple):
    row: int
    name: str


class _Many(NamedTuple):
    row: Int64
    chain_id: str
    many: tuple[int, ...]


def _table(record: type[Any], key: str) -> Table[Any]:
    """A table that other tests do not meet."""
    table = Table("wrong", record, key=(key,))
    del TABLES[table.name]
    return table


def _rows(*changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first row of each chain, as often as there are changes, with these."""

    def rows(self: CountTokens, row: int, chain: Any) -> list[StepTokens]:
        first = CountTokens.rows(self, row, chain)[0]
        return [first._replace(**change) for change in changes]

    return {"rows": rows}


@dataclass
class _Untyped(TaskConfig):
    when: object = None


def _raising(error: Exception) -> Callable[..., Any]:
    def rows(*_: Any) -> Any:
        raise error

    return rows


UNUSABLE: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "noname": ({"name": "other"}, "it is no class with the name noname"),
    "commits": ({}, "or is that of another folder of a run or of a command"),
    "three": ({"settings": 3}, "its settings are no class derived from TaskConfig"),
    "untyped": ({"settings": _Untyped}, "cannot be used because of its settings: "),
    "text": ({"table": "x"}, "its table is no Table"),
    "keyless": ({"table": _table(_Keyless, "step_index")}, "its table has no key that begins with `row`"),
    "nameless": ({"table": _table(_Nameless, "row")}, "or lacks the integers `row` or the texts `chain_id`"),
    "mute": ({"summary": None}, "its summary is no line of text"),
}
"""Those that no command has: what is wrong, and what is said."""
AT_WORK: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "foreign": (_rows({"row": 12_345}), "ValueError: a row has row=12345 and chain_id="),
    "stranger": (
        _rows({"chain_id": "0" * 20}),
        f"ValueError: a row has row=0 and chain_id='{'0' * 20}', but the chain is row",
    ),
    "twice": (_rows({}, {}), "ValueError: two rows have the same row, step_index"),
    "null": (_rows({"n_tokens": None}), "ValueError: n_tokens is None"),
    "float": (_rows({"n_tokens": 1.5}), "ValueError: n_tokens is no whole number"),
    "floats": (
        {
            "table": _table(_Many, "row"),
            "rows": lambda _, row, chain: [_Many(row, chain.chain_id, cast("Any", (1.5, 2)))],
        },
        "ValueError: many is no whole number",
    ),
    "nothing": ({"rows": lambda *_: None}, "TypeError: "),
    "number": ({"rows": lambda *_: [3]}, "AttributeError: 'int' object has no attribute 'row'"),
    "raises": ({"rows": _raising(KeyError("x"))}, "KeyError: 'x'"),
}
"""Those whose rows end the run."""


def __getattr__(name: str) -> Any:
    members = {
        **UNUSABLE,
        **AT_WORK,
        "killer": ({"rows": _raising(EngineDied("a worker died"))}, ""),
        "speechless": ({"lines": _raising(ValueError("no words"))}, ""),
        "blind": ({"faults": _raising(KeyError("eye"))}, ""),
        "status": ({}, ""),
        "stillborn": ({"__init__": _raising(ValueError("no"))}, ""),
    }
    if name not in members:
        raise AttributeError(name)
    return type(name, (CountTokens,), {"name": name, "__module__": __name__, **members[name][0]})
