"""An expression of plain numbers with units, as a tree."""

from dataclasses import dataclass
from fractions import Fraction

from pipeline.data.units import Unit


class UnreadableError(ValueError):
    """The tokens are not an expression that this module reads."""


@dataclass(slots=True)
class Node:
    """An expression. `kind` is an operator (+ - * / ^), `negative`, `!`, `sqrt`, `number`, or `sum`: parts of one quantity.

    Of numbers: `above` and `below` are units, known ones only, `nouns` the words of other ones, and `scale` a word such
    as million. `mixed`: a number and a fraction without a sign between, which may be a mixed number or a product. `grouped`: it
    stood in brackets, or as a fraction. `share`: a product with the word "of"."""

    kind: str
    parts: "tuple[Node, ...]" = ()
    value: Fraction = Fraction(0)
    places: int = 0
    percent: bool = False
    money: bool = False
    scale: int = 1
    above: tuple[Unit, ...] = ()
    below: tuple[Unit, ...] = ()
    nouns: frozenset[str] = frozenset()
    mixed: bool = False
    grouped: bool = False
    share: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it is one number without any operation."""
        return self.kind == "number" or (self.kind == "negative" and self.parts[0].kind == "number")

    def nodes(self) -> "list[Node]":
        """It and all expressions in it."""
        found = [self]
        for node in found:
            found.extend(node.parts)
        return found

    def numbers(self) -> "list[Node]":
        """All numbers in it."""
        return [node for node in self.nodes() if node.kind == "number"]
