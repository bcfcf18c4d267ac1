"""The words beside a value that deny it."""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import StepvalueError
from pipeline.graders.math import denials
from pipeline.graders.math.denials import is_denied
from pipeline.graders.math.wording import read_phrases

# The parser of regular expressions: a test that knows each alternative of a pattern also knows those that are added to it.
PARSER = import_module("re._parser")
EMPTY = {"AT", "ASSERT", "ASSERT_NOT"}
WORD_CHARACTERS = {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "w", "CATEGORY_SPACE": " "}


def texts_of(pattern: re.Pattern[str]) -> list[str]:
    """Texts that a pattern may match: each of its alternatives in one of them at least, beside the first of the others."""
    return list(dict.fromkeys(_sequence(PARSER.parse(pattern.pattern, pattern.flags))))


def _sequence(items: Iterable[Any]) -> Iterator[str]:
    parts = [list(_item(str(operator), argument)) for operator, argument in items]
    first = [part[0] for part in parts]
    for place, part in enumerate(parts):
        for text in part:
            yield "".join([*first[:place], text, *first[place + 1 :]])
    if not parts:
        yield ""


def _item(operator: str, argument: Any) -> Iterator[str]:
    if operator == "LITERAL":
        yield chr(argument)
    elif operator == "IN":
        yield from (text for each in argument for text in _item(str(each[0]), each[1]))
    elif operator == "RANGE":
        yield chr(argument[0])
    elif operator == "CATEGORY":
        yield WORD_CHARACTERS[str(argument)]
    elif operator == "BRANCH":
        yield from (text for branch in argument[1] for text in _sequence(branch))
    elif operator == "SUBPATTERN":
        yield from _sequence(argument[3])
    elif operator in ("MAX_REPEAT", "MIN_REPEAT"):
        least, _, inside = argument
        yield from (text * max(least, 1) for text in _sequence(inside))
        yield from ([""] if least == 0 else [])
    else:
        assert operator in EMPTY, f"{operator}: say here which text it matches"
        yield ""


def matched(pattern: re.Pattern[str], least: int) -> list[str]:
    """The texts of a pattern that it matches: at least `least` of them, which are most."""
    found = [text for text in texts_of(pattern) if pattern.search(text)]
    assert len(found) >= least
    return found


def test_every_denial_before_a_value_passes_the_quick_look_for_words() -> None:
    """The quick look knows a word of each alternative of the patterns."""
    assert [text for text in matched(denials._BEFORE, 150) if not is_denied(text, "")] == []
    assert [text for text in matched(denials._SUPPOSE, 5) if not is_denied(text, "")] == []
    assert [text for text in matched(denials._IF, 8) if not is_denied(f"{text} it is ", "then")] == []


def test_every_denial_after_a_value_is_seen() -> None:
    """What comes after a value is looked at only if it begins with one of a few characters."""
    assert [text for text in matched(denials._AFTER, 150) if not is_denied("", text)] == []


@pytest.mark.parametrize("mark", ["", "*", "**", "(", "[", '"', "\u2014", "`", "~"])
@pytest.mark.parametrize(
    "denial", ["not ", "twice ", "rather than ", "n't ", "we dismisses ", "WE RULED OUT ", "ISN'T "]
)
def test_the_mark_before_a_denial_hides_nothing(mark: str, denial: str) -> None:
    assert is_denied(f"It is {mark}{denial}", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("begun = ", "cannot be read"),
        ("five = 5", "`five` must be a text"),
        ("blank = ' '", "`blank` must be a text"),
        ("more = 'in all|in .+'", "`more`: 'in all|in .+': write a phrase whose repeats are bounded"),
        ("open = 'in (all'", "`open`: 'in (all': missing )"),
        ("named = 'in <all>'", "there is no key `all`"),
        ("group = '(in) all'", "write (?:...) for (...)"),
        ("none = 'in all||in sum'", "a phrase is empty"),
    ],
)
def test_a_damaged_file_of_phrases_is_named_with_its_entry(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "xx.toml"
    path.write_text(text)
    with pytest.raises(StepvalueError, match=re.escape(f"{path}: ") + ".*" + re.escape(words)):
        read_phrases(tmp_path)
    path.write_text("adverbs = 'vraiment'")
    (tmp_path / "en.toml").write_text("adverb = 'really'")
    with pytest.raises(StepvalueError, match=re.escape(f"{path}: nothing reads the key `adverbs`")):
        read_phrases(tmp_path)
    (tmp_path / "en.toml").unlink()
    path.write_text("one = '<two>'\ntwo = '<one>'")
    with pytest.raises(StepvalueError, match="name each other"):
        read_phrases(tmp_path)
