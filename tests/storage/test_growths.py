"""Growths come back as they were published, in their order."""

from pathlib import Path

from pipeline.storage.commits import publish
from pipeline.storage.growths import (
    STRENGTH,
    allotments,
    growth_sequence,
    growth_settings,
    growths_needed,
    growths_of,
    new_growth,
    write_allotments,
)
from pipeline.storage.local import LocalStorage

SETTINGS = {"grow.pick": "pairs", "grow.budget": 100, STRENGTH: 0.25, "grow.own": ["ё", None]}
ROWS = [("a" * 20, "p1", 40), ("a" * 20, "p2", 2**40), ("b" * 20, "p3", 8)]


def test_growths_come_back_as_they_were_published(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    assert growths_of(growth_sequence(storage)) == ()
    assert growths_needed(()) == 0
    for number, rows in enumerate((ROWS, [])):
        sequence = growth_sequence(storage)
        made = new_growth(sequence, SETTINGS, write_allotments(storage, sequence.length, rows))
        assert made.number == number
        assert publish(storage, made)
        assert not publish(storage, new_growth(sequence, {**SETTINGS, "grow.budget": 7}, made.shards[0]))
    first, second = growths_of(growth_sequence(storage))
    assert growth_settings(first) == growth_settings(second) == SETTINGS
    assert allotments(storage, first) == {"a" * 20: {"p1": 40, "p2": 2**40}, "b" * 20: {"p3": 8}}
    assert allotments(storage, second) == {}
    assert growths_needed([first]) == 1
    assert growths_needed([first, second]) == 2
