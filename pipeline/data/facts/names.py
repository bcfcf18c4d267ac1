"""The normal form of a name: equal for names that differ in case, accents, blanks, articles and dashes alone. Pure."""

import re
import unicodedata

LONGEST_NAME = 400
"""Characters. A longer text is no name."""
_ARTICLES = ("the ", "a ", "an ")
# Letters that stand for others: commas and dashes for blanks, and the apostrophes of typesetters.
_SAME = str.maketrans(dict.fromkeys(",_-\u2010\u2011\u2012\u2013\u2014\u2015", " ") | dict.fromkeys("’‘ʼ`", "'"))
_POINT = re.compile(r"\.(?!\d)")
"""Of an abbreviation: `U.S.` is `US`."""
_EDGES = " .,;:!?\"'“”«»*$()[]"


def normal_name(text: str) -> str:
    """The normal form of a name; empty if a text is none. `The Côte d’Ivoire` -> `cote d'ivoire`.

    Letters of all scripts stay; only accents on letters are left out. The normal form is its own normal form.
    """
    if len(text) > LONGEST_NAME:
        return ""
    if not text.isascii():
        # Folding a letter can make one that decomposes, and so the other way round.
        text = _without_accents(_without_accents(text).casefold()).casefold()
    if "." in text:
        text = _POINT.sub("", text)
    text = " ".join(text.lower().translate(_SAME).split()).strip(_EDGES)
    while text.startswith(_ARTICLES):
        text = text.partition(" ")[2].strip(_EDGES)
    return text


def storable(text: str) -> str:
    """A text as SQLite takes it: without halves of surrogate pairs, which JSON can escape."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _without_accents(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def are_alike(one: str, other: str) -> bool:
    """Whether two normal forms may be spellings or parts of one name: `delhi` and `new delhi`, `kiev` and `kyiv`, `usa`."""
    words, others = one.split(), other.split()
    if set(words) <= set(others) or set(others) <= set(words) or initials(words) == other or initials(others) == one:
        return True
    return _distance_within(one, other, max(len(one), len(other)) // 3)


def initials(words: list[str]) -> str:
    """The first letters of words, without small ones: `united states of america` -> `usa`."""
    return "".join(word[0] for word in words if word not in {"of", "the", "and"}) if len(words) > 1 else ""


def _distance_within(one: str, other: str, most: int) -> bool:
    """Whether at most `most` letters have to be changed, added or left out to make one text of another."""
    if abs(len(one) - len(other)) > most or max(len(one), len(other)) > LONGEST_NAME:
        return False
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        above, row[0] = row[0], at
        for place, its in enumerate(other, start=1):
            above, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, above + (letter != its))
        if min(row) > most:
            return False
    return row[-1] <= most
