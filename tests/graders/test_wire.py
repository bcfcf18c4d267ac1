"""Values pass between two processes unchanged, and objects of the other process cannot influence comparisons."""

import operator
import os
import threading
from collections import Counter, namedtuple
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graders.code.wire import OtherSideEndedError, Peer, Remote

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(exclude_categories=[])) | st.binary() | st.fractions() | st.decimals(allow_nan=False)
)  # fmt: skip
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.sets(scalars, max_size=3)
        | st.frozensets(scalars, max_size=3) | st.dictionaries(scalars, inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip
Pair = namedtuple("Pair", "left right")


class Colour(IntEnum):
    RED = 1


class Always:
    """Equal to everything. A program may define such a class."""

    items: list[int]

    def __init__(self) -> None:
        self.items = [1]

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __sub__(self, other: object) -> int:
        return 0


class Program:
    """The objects that the other process offers."""

    def echo(self, value: Any) -> Any:
        return value

    def always(self) -> Always:
        return Always()

    def fails(self) -> None:
        raise type("OwnError", (KeyError,), {})("why")

    def sort(self, items: list[int], *, backwards: bool = False) -> None:
        items.sort(reverse=backwards)

    def apply(self, function: Callable[[int], int], value: int) -> int:
        return function(value)

    def count(self, end: int) -> Iterator[int]:
        yield from range(end)


@pytest.fixture(scope="module")
def program() -> Iterator[Any]:
    """The program at the other end of two pipes."""
    (there, here_out), (here_in, back) = os.pipe(), os.pipe()
    served = Peer(there, back, lambda *_: True)
    assert served.export(Program()) == 0
    thread = threading.Thread(target=served.serve)
    thread.start()
    yield Remote(Peer(here_in, here_out, lambda operation, *_: operation == "call"), 0)
    os.close(here_out)
    thread.join()
    for descriptor in (there, here_in, back):
        os.close(descriptor)


@given(value=values)
def test_plain_values_come_back_as_they_were(program: Any, value: Any) -> None:
    found = program.echo(value)
    assert type(found) is type(value)
    assert found == value


def test_large_numbers_cross_in_no_time(program: Any) -> None:
    assert program.echo(7**300_000) == 7**300_000


def test_usual_subclasses_arrive_as_what_they_are_based_on(program: Any) -> None:
    assert program.echo(Pair(1, 2)) == (1, 2)
    assert program.echo(Counter("aab")) == {"a": 2, "b": 1}
    assert program.echo(Colour.RED) == 1
    assert program.echo([Fraction(1, 2), Decimal("0.10")]) == [0.5, Decimal("0.1")]


def test_an_object_of_the_other_side_equals_no_plain_value(program: Any) -> None:
    always = program.always()
    assert isinstance(always, Remote)
    assert always == program.always()
    plain: list[object] = [0, 1, "", [], None, True]
    for value in plain:
        assert always != value
        assert value != always
        assert always not in [value]
    with pytest.raises(TypeError):
        operator.sub(always, 1)
    with pytest.raises(TypeError):
        _ = abs(always) < 1


def test_objects_are_used_from_afar(program: Any) -> None:
    always = program.always()
    always.items = [4, 5]
    assert always.items == [4, 5]
    assert list(program.count(3)) == [0, 1, 2]
    assert program.apply(lambda value: value + 1, 41) == 42
    assert "Always object" in str(always)


def test_arguments_changed_in_place_are_changed_here_too(program: Any) -> None:
    items = [2, 3, 1]
    assert program.sort(items, backwards=True) is None
    assert items == [3, 2, 1]


def test_exceptions_arrive_as_their_nearest_builtin_class(program: Any) -> None:
    with pytest.raises(KeyError, match="why"):
        program.fails()
    with pytest.raises(AttributeError):
        program.nothing()


def test_the_other_side_may_do_only_what_it_is_served() -> None:
    (there, here_out), (here_in, back) = os.pipe(), os.pipe()
    served = Peer(there, back, lambda operation, *_: operation == "call")
    assert served.export(lambda: 3) == 0
    thread = threading.Thread(target=served.serve)
    thread.start()
    function = Remote(Peer(here_in, here_out, lambda *_: False), 0)
    assert function() == 3
    with pytest.raises(AttributeError):
        function._peer.ask("get", function, "__globals__")
    os.close(here_out)
    thread.join()
    for descriptor in (there, here_in, back):
        os.close(descriptor)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"no json\n",
        b"3\n",
        b'{"value": ["unknown"]}\n',
        b'{"value": ["yours", 7]}\n',
        b'{"raised": "SystemExit", "text": ""}\n',
        b'{"raised": "eval", "text": "1"}\n',
        b'{"value": ' + b"[" * 100_000 + b"\n",
        b"{}\n",
    ],
)
def test_a_reply_out_of_protocol_raises(reply: bytes) -> None:
    (reading, writing), (sink_in, sink) = os.pipe(), os.pipe()

    def replies() -> None:
        os.write(writing, reply)
        os.close(writing)

    thread = threading.Thread(target=replies)
    thread.start()
    with pytest.raises((OtherSideEndedError, ValueError, KeyError, IndexError)):
        Remote(Peer(reading, sink, lambda *_: False), 0)()
    thread.join()
    for descriptor in (reading, sink_in, sink):
        os.close(descriptor)
