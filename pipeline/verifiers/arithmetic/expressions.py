r"""Reads an expression of plain numbers with units from tokens, as a tree. A whole expression is read or nothing. Pure.

    12 crayons * 3 + 4 crayons      2(3+4)      \frac{1}{2} \times 30      20% of $50      2 1/2      5! / 3^2      \sqrt{16}

The work is bounded: by the nesting of brackets, and by a budget of tokens that all readings of one step share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.data.numbers import SCALES
from pipeline.data.units import DOLLAR, UNITS
from pipeline.verifiers.arithmetic.tokens import OF, Token, token_at
from pipeline.verifiers.arithmetic.values import Node, UnreadableError
from pipeline.verifiers.arithmetic.words import FOLLOWERS, NEVER_UNITS, words_of

MOST_NESTED = 20
MOST_NUMBERS = 120
"""In one expression."""
MOST_WORDS = 10
"""Words of a description such as "pieces of candy per candy block"."""
_UNIT_LETTERS = "amgshlL"
_ENDING = ("operator", "relation", "close", "break", "delimiter", "end")
_LITTLE = words_of("of a an the each in left more total altogether remaining other another")


@dataclass(slots=True)
class Budget:
    """How many more tokens are read in a step."""

    left: int

    @property
    def spent(self) -> bool:
        return self.left < 0

    def take(self) -> None:
        self.left -= 1
        if self.spent:
            raise UnreadableError


@dataclass(frozen=True, slots=True)
class Reading:
    """An expression that was read, and the place of the token after it.

    `prefixes`: what its first terms are worth, as in a running calculation: of 5 + 3 - 2 first 5, then 5 + 3."""

    node: Node
    end: int
    prefixes: tuple[Node, ...] = ()


@dataclass(slots=True)
class Reader:
    """A recursive descent parser of one expression.

    `strict`: words must be units up to the end. Otherwise the expression ends where words are something else.
    `hyphened`: 1-1/2 is a mixed number, and what begins with a range such as 10-12 is not read."""

    _tokens: Sequence[Token]
    _at: int
    _end: int
    _budget: Budget
    strict: bool = True
    hyphened: bool = False
    _depth: int = 0
    _atoms: int = 0
    _cut: bool = False
    _prefixes: list[Node] = field(default_factory=list)

    def read(self) -> Reading | None:
        """The expression; None where there is none."""
        try:
            return Reading(self._sum(), self._at, tuple(self._prefixes))
        except UnreadableError:
            return None

    def _peek(self, ahead: int = 0) -> Token:
        """A token that is not read yet. Of kind `end` after the last one, and where words have ended the expression."""
        at = self._at + ahead
        return token_at(self._tokens, at if at < self._end and not self._cut else -1)

    def _operator(self, *among: str) -> str:
        """The operator at this place, if it goes on with the expression."""
        token, following = self._peek(), self._peek(1)
        if token.kind != "operator" or token.text not in among:
            return ""
        if _opens(following):
            self._at += 1
            return token.text
        dash = token.text == "-" and not token.glued and not self.strict and not self._depth
        word = following.kind == "word" and not following.glued and len(following.text) > 1
        if not dash or not (word or following.kind == "end"):
            raise UnreadableError
        self._cut = True
        return ""

    def _sum(self) -> Node:
        node = self._product(is_first=not self._depth)
        while operator := self._operator("+", "-"):
            if not self._depth:
                self._prefixes.append(node)
            node = Node(operator, (node, self._product()))
        return node

    def _product(self, *, is_first: bool = False) -> Node:
        node = self._signed()
        divided = False
        while True:
            if operator := self._operator("*", "/", OF):
                if is_first:
                    self._prefixes.append(node)
                divided = operator == "/"
                node = Node("*" if operator == OF else operator, (node, self._signed()), share=operator == OF)
            elif self._multiplies(token := self._peek()):
                if divided:
                    raise UnreadableError
                mixed = node.kind == "number" and token.text == "frac"
                node = Node("*", (node, self._power()), mixed=mixed)
            else:
                return node

    def _multiplies(self, token: Token) -> bool:
        r"""Whether a token begins a factor without a sign before it: 2(3+4), (2)(3), 2\sqrt{9}, 2\frac{1}{2}."""
        before = self._tokens[self._at - 1]
        if token.kind == "open" and token.match >= 0:
            return before.kind == "close" or (before.kind == "number" and token.glued)
        return token.kind == "function" and before.kind in ("number", "close")

    def _signed(self) -> Node:
        token = self._peek()
        if token.kind != "operator" or token.text not in "+-":
            return self._power()
        self._at += 1
        node = self._power()
        return Node("negative", (node,)) if token.text == "-" else node

    def _power(self) -> Node:
        node = self._atom()
        while True:
            token = self._peek()
            if token.kind == "operator" and token.text == "^":
                self._at += 1
                node = Node("^", (node, self._exponent()))
                if self._peek().text == "^":
                    raise UnreadableError
                self._described(node)
            elif token.kind == "factorial" and token.glued:
                # An exclamation mark at the end of a text is a factorial in neither case: the equation is not judged.
                self._at += 1
                after = token_at(self._tokens, self._at).kind
                if after not in ("operator", "relation", "close", "delimiter", "number"):
                    raise UnreadableError
                node = Node("!", (node,))
            else:
                return node

    def _exponent(self) -> Node:
        token = self._peek()
        if token.kind == "operator" and token.text == "-":
            self._at += 1
            return Node("negative", (self._exponent(),))
        return self._bare_number() if token.kind == "number" else self._group()

    def _atom(self) -> Node:
        self._budget.take()
        self._atoms += 1
        token = self._peek()
        if self._atoms > MOST_NUMBERS:
            raise UnreadableError
        if token.kind == "number":
            return self._number()
        if token.kind == "function":
            self._at += 1
            top = self._group("{")
            node = Node("/", (top, self._group("{")), grouped=True) if token.text == "frac" else Node("sqrt", (top,))
        else:
            node = self._group()
            if self._peek().kind == "percent":
                raise UnreadableError
        self._described(node)
        return node

    def _group(self, bracket: str = "") -> Node:
        token = self._peek()
        if token.kind != "open" or token.match < 0 or self._depth >= MOST_NESTED or (bracket and token.text != bracket):
            raise UnreadableError
        self._depth += 1
        self._at += 1
        node = self._sum()
        if self._at != token.match or self._cut:
            raise UnreadableError
        self._at += 1
        self._depth -= 1
        node.grouped = True
        return node

    def _bare_number(self) -> Node:
        token = self._tokens[self._at]
        self._at += 1
        return Node("number", value=token.value, places=token.places, money=token.money)

    def _number(self) -> Node:
        node = self._bare_number()
        node.above = (DOLLAR,) if node.money else ()
        # A fraction of less than one after a number makes a mixed number: 2 1/2.
        dash = self.hyphened and self._peek().text == "-" and self._peek().glued
        top, slash, under = (self._peek(ahead + dash) for ahead in range(3))
        plain = top.kind == under.kind == "number" and top.glued == dash and not (node.places + top.places or top.money)
        if plain and slash.text == "/" and not under.places and 0 < top.value < under.value:
            node.value += top.value / under.value
            self._at += 3 + dash
        elif dash and top.glued and top.value > node.value and self._atoms == 1 and not self._depth:
            raise UnreadableError
        if self._peek().kind == "percent":
            self._at += 1
            node.percent = True
        parts = [node]
        while skipped := self._smaller_follows():
            parts[-1].above = (UNITS[self._peek().text.lower()],)
            self._at += skipped
            parts.append(self._bare_number())
        self._described(parts[-1])
        return node if len(parts) == 1 else Node("sum", tuple(parts))

    def _smaller_follows(self) -> int:
        """How many tokens stand before the second number of 2 hours and 30 minutes; 0 if there is no such number."""
        skipped = 1 + (self._peek(1).text.lower() == "and")
        words = [token for token in (self._peek(), self._peek(skipped + 1)) if token.kind == "word"]
        units = [unit for token in words if (unit := UNITS.get(token.text.lower()))]
        if len(units) < 2 or self._peek(skipped).kind != "number":
            return 0
        return skipped if units[0].quantity == units[1].quantity and units[1].size < units[0].size else 0

    def _described(self, node: Node) -> None:
        """Read the words after a number or a bracket: its unit. Only numbers keep it, but any words must be able to be one."""
        end, said, above, below = self._words_after()
        if end == self._at:
            return
        self._budget.take()
        token = token_at(self._tokens, end if end < self._end else -1)
        usable = not NEVER_UNITS.intersection(said)
        whole = usable and token.kind in _ENDING
        if self._is_variable() or FOLLOWERS.intersection(said) or ((self.strict or self._depth) and not whole):
            raise UnreadableError
        if node.kind == "number":
            _add_units(node, above if usable else above[:1], below if usable else [])
        if whole:
            self._at = end
        self._cut = not whole or (token.kind == "operator" and not _opens(self._peek(1)))

    def _words_after(self) -> tuple[int, list[str], list[str], list[str]]:
        """The end of the words at this place, those that must be able to be a unit, and those above and below a slash."""
        end, said, sides = self._at, list[str](), (list[str](), list[str]())
        below = after_slash = False
        while end - self._at < MOST_WORDS:
            token, following, exponent = (self._peek(end - self._at + ahead) for ahead in range(3))
            if token.kind == "word":
                word = token.text.lower()
                powered = following.text == "^" and following.glued and exponent.value in (2, 3)
                # A word after a slash need not be able to be a unit.
                said += [] if after_slash else [word]
                after_slash = word == "per"
                below = below or after_slash
                sides[below].extend([] if after_slash else [word] * (int(exponent.value) if powered else 1))
                end += 3 if powered else 1
            elif token.kind == "operator" and token.text == "/" and following.kind == "word":
                if len(following.text) == 1 and following.text not in _UNIT_LETTERS:
                    raise UnreadableError
                below = after_slash = True
                end += 1
            else:
                break
        return end, said, *sides

    def _is_variable(self) -> bool:
        """Whether the word at this place is an unknown: a single letter, or letters that touch a number and are no unit."""
        token, before = self._peek(), self._tokens[self._at - 1]
        if token.kind != "word":
            return False
        if len(token.text) == 1:
            return token.glued or token.text not in _UNIT_LETTERS
        touches = before.kind == "number" and len(token.text) == 2 and token.text[0] != "-"
        return token.glued and (before.kind == "close" or (touches and token.text.lower() not in UNITS))


def _opens(token: Token) -> bool:
    if token.kind == "operator":
        return token.text in "+-"
    return token.kind in ("number", "function") or (token.kind == "open" and token.match >= 0)


def _add_units(node: Node, above: Sequence[str], below: Sequence[str]) -> None:
    words = above if above == ["in"] else [word for word in above if word not in _LITTLE]
    if words and (scale := SCALES.get(words[0].removesuffix("s"))):
        node.scale, words = scale, words[1:]
    if words and words[0] in ("square", "sq", "cubic", "cu"):
        node.nouns = frozenset([" ".join(words[:2])])
        return
    if words and (unit := UNITS.get(words[0])) and not node.percent:
        node.above = (*node.above, *[unit] * (1 + words[1:3].count(words[0])))
        if len(words[0]) > 2 and words[0][-1] != "s" and above[above.index(words[0]) + 1 :][:1] == words[1:2] != []:
            # A 1 hour class may take 50 minutes.
            node.nouns = frozenset(words[1:2])
    else:
        node.nouns = frozenset(word.removesuffix("s") for word in words)
    node.below = tuple(UNITS[word] for word in [word for word in below if word not in _LITTLE][:1] if word in UNITS)
