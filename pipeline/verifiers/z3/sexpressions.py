"""Reads the expressions that SMT-LIB is written in: atoms and lists in brackets. Pure, without recursion, within limits.

Strings, keywords, binary numbers and names in bars with blanks are not read: no formula that is read here needs them.
"""

import re

from pipeline.verifiers.reading import NotRead

MOST_ATOMS = 20_000
MOST_LEVELS = 100

SExpression = str | tuple["SExpression", ...]
"""An atom, or a list."""
_NAME = r"[A-Za-z~!@$%^&*_+=<>.?/\-][0-9A-Za-z~!@$%^&*_+=<>.?/\-]*"
_TOKEN = re.compile(
    rf"(?P<skipped>[ \t\r\n]+|;[^\n]*)|(?P<bracket>[()])|(?P<atom>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|{_NAME}|\|{_NAME}\|)"
)
_AFTER_ATOM = frozenset(" \t\r\n();")


def expressions(text: str) -> list[SExpression]:
    """The expressions of a text. Raises NotRead if the text is anything else, or too large."""
    done: list[SExpression] = []
    open_lists: list[list[SExpression]] = []
    at = atoms = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotRead(f"{text[at : at + 10]!r} is not read")
        at = token.end()
        match token.lastgroup:
            case "atom":
                atoms += 1
                if atoms > MOST_ATOMS:
                    raise NotRead(f"more than {MOST_ATOMS} atoms")
                if at < len(text) and text[at] not in _AFTER_ATOM:
                    raise NotRead(f"{text[token.start() : at + 1]!r} is not read")
                (open_lists[-1] if open_lists else done).append(token["atom"].strip("|"))
            case "bracket" if token["bracket"] == "(":
                if len(open_lists) >= MOST_LEVELS:
                    raise NotRead(f"more than {MOST_LEVELS} levels")
                open_lists.append([])
            case "bracket":
                if not open_lists:
                    raise NotRead("a bracket closes that was not opened")
                closed = tuple(open_lists.pop())
                (open_lists[-1] if open_lists else done).append(closed)
            case _:
                pass
    if open_lists:
        raise NotRead("a bracket is not closed")
    return done


def written(expression: SExpression) -> str:
    """The text of an expression, in one line."""
    return expression if isinstance(expression, str) else f"({' '.join(map(written, expression))})"
