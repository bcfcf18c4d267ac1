r"""Reads an expression of plain numbers with units from tokens, as a tree. A whole expression is read or nothing. Pure.

    12 crayons * 3 + 4 crayons      2(3+4)      \frac{1}{2} \times 30      20% of $50      2 1/2      5! / 3^2      \sqrt{16}

The work is bounded: by the nesting of brackets, and by a budget of tokens that all readings of one step share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.data.numbers import SCALES
from pipeline.data.units import DOLLAR, UNITS, Unit
from pipeline.verifiers.arithmetic.values import Node, UnreadableError
from pipeline.verifiers.arithmetic.tokens import OF, Token, TokenKind
from pipeline.verifiers.arithmetic.words import FOLLOWERS, NEVER_UNITS

MOST_NESTED = 20
MOST_NUMBERS = 120
"""In one expression."""
MOST_WORDS = 10
"""Words of a description such as "pieces of candy per candy block"."""
_ENDING = frozenset({TokenKind.OPERATOR, TokenKind.RELATION, TokenKind.CLOSE, TokenKind.BREAK, TokenKind.DELIMITER})
_SHORT = 2
"""Letters that touch a number: 3ab is a product."""
_GLUED_UNITS = frozenset({"in"})


@dataclass(slots=True)
class Budget:
    """How many more tokens are read in a step."""

    left: int
    spent: bool = field(default=False, init=False)

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.spent = True
            raise UnreadableError


@dataclass(frozen=True, slots=True)
class Reading:
    """An expression that was read, and the place of the token after it.

    `prefixes`: what its first terms are worth, as in a running calculation: of 5 + 3 - 2 first 5, then 5 + 3."""

    node: Node
    end: int
    prefixes: tuple[Node, ...] = ()


@dataclass(slots=True)
class _Words:
    """The words after a number, up to `end`. `said`: those that must be able to be a unit; one after a slash need not."""

    end: int
    said: list[str] = field(default_factory=list)
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)


class Reader:
    """A recursive descent parser of one expression.

    `strict`: words must be units up to the end. Otherwise the expression ends where words are something else."""

    def __init__(self, tokens: Sequence[Token], at: int, end: int, budget: Budget, *, strict: bool) -> None:
        self._tokens = tokens
        self._at = at
        self._end = end
        self._budget = budget
        self._strict = strict
        self._depth = 0
        self._atoms = 0
        self._cut = False
        self._is_first = True
        self._prefixes: list[Node] = []

    def read(self) -> Reading:
        """Raises UnreadableError."""
        node = self._sum()
        return Reading(node, self._at, tuple(self._prefixes))

    def _peek(self, ahead: int = 0) -> Token | None:
        at = self._at + ahead
        return self._tokens[at] if at < self._end else None

    def _operator(self, among: tuple[str, ...]) -> str:
        """The operator at this place, if it goes on with the expression."""
        token = self._peek()
        if self._cut or token is None or token.kind is not TokenKind.OPERATOR or token.text not in among:
            return ""
        following = self._peek(1)
        if following is None or not _opens(following):
            if not self._strict and not self._depth and token.text == "-" and _is_dash(token, following):
                self._cut = True
                return ""
            raise UnreadableError
        return token.text

    def _sum(self) -> Node:
        node = self._product()
        while operator := self._operator(("+", "-")):
            if not self._depth:
                self._prefixes.append(node)
                self._is_first = False
            self._at += 1
            node = Node(operator, (node, self._product()))
        return node

    def _product(self) -> Node:
        node = self._signed()
        divided = False
        while True:
            if operator := self._operator(("*", "/", OF)):
                if not self._depth and self._is_first:
                    self._prefixes.append(node)
                self._at += 1
                kind = "*" if operator == OF else operator
                node = Node(kind, (node, self._signed()), share=operator == OF)
                divided = operator == "/"
            elif not self._cut and (token := self._peek()) is not None and self._multiplies(token):
                if divided:
                    raise UnreadableError
                factor = self._power()
                mixed = node.kind == "number" and token.text == "frac"
                node = Node("*", (node, factor), mixed=mixed)
            else:
                return node

    def _multiplies(self, token: Token) -> bool:
        r"""Whether a token begins a factor without a sign before it: 2(3+4), (2)(3), 2\sqrt{9}, 2\frac{1}{2}."""
        before = self._tokens[self._at - 1]
        if token.kind is TokenKind.OPEN and token.match >= 0:
            return before.kind is TokenKind.CLOSE or (before.kind is TokenKind.NUMBER and token.glued)
        return token.kind is TokenKind.FUNCTION and before.kind in (TokenKind.NUMBER, TokenKind.CLOSE)

    def _signed(self) -> Node:
        token = self._peek()
        if token is not None and token.kind is TokenKind.OPERATOR and token.text in "+-":
            self._at += 1
            following = self._peek()
            if following is None or following.kind is TokenKind.OPERATOR:
                raise UnreadableError
            node = self._power()
            return Node("negative", (node,)) if token.text == "-" else node
        return self._power()

    def _power(self) -> Node:
        node = self._atom()
        while (token := self._peek()) is not None and not self._cut:
            if token.kind is TokenKind.OPERATOR and token.text == "^":
                self._at += 1
                node = Node("^", (node, self._exponent()))
                if (after := self._peek()) is not None and after.text == "^":
                    raise UnreadableError
                self._described(node)
            elif token.kind is TokenKind.FACTORIAL and token.glued and self._is_factorial():
                self._at += 1
                node = Node("!", (node,))
            else:
                break
        return node

    def _is_factorial(self) -> bool:
        """An exclamation mark at the end of a text is a factorial in neither case: the equation is not judged."""
        after = self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else None
        if after is None or after.kind not in (
            TokenKind.OPERATOR,
            TokenKind.RELATION,
            TokenKind.CLOSE,
            TokenKind.DELIMITER,
            TokenKind.NUMBER,
        ):
            raise UnreadableError
        return True

    def _exponent(self) -> Node:
        token = self._peek()
        if token is not None and token.kind is TokenKind.OPERATOR and token.text == "-":
            self._at += 1
            return Node("negative", (self._exponent(),))
        if token is None or token.kind not in (TokenKind.NUMBER, TokenKind.OPEN):
            raise UnreadableError
        return self._group() if token.kind is TokenKind.OPEN else self._bare_number()

    def _atom(self) -> Node:
        self._budget.take()
        self._atoms += 1
        token = self._peek()
        if token is None or self._atoms > MOST_NUMBERS:
            raise UnreadableError
        if token.kind is TokenKind.NUMBER:
            return self._number()
        if token.kind is TokenKind.OPEN:
            node = self._group()
            if (after := self._peek()) is not None and after.kind is TokenKind.PERCENT:
                raise UnreadableError
            self._described(node)
            return node
        if token.kind is TokenKind.FUNCTION:
            self._at += 1
            if token.text == "frac":
                node = Node("/", (self._group("{"), self._group("{")), grouped=True)
            else:
                node = Node("sqrt", (self._group("{"),))
            self._described(node)
            return node
        raise UnreadableError

    def _group(self, bracket: str = "") -> Node:
        token = self._peek()
        if token is None or token.kind is not TokenKind.OPEN or token.match < 0 or (bracket and token.text != bracket):
            raise UnreadableError
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise UnreadableError
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
        if node.money:
            node.above = (DOLLAR,)
        self._add_mixed(node)
        if (token := self._peek()) is not None and token.kind is TokenKind.PERCENT:
            self._at += 1
            node.percent = True
        parts = [node]
        while skipped := self._smaller_follows():
            parts[-1].above = (UNITS[self._tokens[self._at].text.lower()],)
            self._at += skipped
            parts.append(self._bare_number())
        self._described(parts[-1])
        return node if len(parts) == 1 else Node("sum", tuple(parts))

    def _add_mixed(self, node: Node) -> None:
        """Read on a mixed number: 2 1/2, 3 and 1/4 are one number where the fraction is less than one."""
        ahead = [self._peek(number) for number in range(3)]
        if node.places or any(each is None for each in ahead):
            return
        top, slash, bottom = (each for each in ahead if each is not None)
        numbers = top.kind is TokenKind.NUMBER and bottom.kind is TokenKind.NUMBER and slash.text == "/"
        plain = not (top.glued or top.money or top.places or bottom.places)
        if numbers and plain and 0 < top.value < bottom.value:
            node.value += top.value / bottom.value
            self._at += 3

    def _described(self, node: Node) -> None:
        """Read the words after a number or a bracket: its unit. Only numbers keep it, but any words must be able to be one."""
        first = self._at
        words = self._words_after()
        if words.end == first:
            return
        self._budget.take()
        at = words.end
        token = self._tokens[at] if at < self._end else None
        usable = not NEVER_UNITS.intersection(words.said)
        goes_on = token is None or token.kind in _ENDING
        inside = self._strict or self._depth > 0
        if self._is_variable(first) or FOLLOWERS.intersection(words.said) or (inside and not (usable and goes_on)):
            raise UnreadableError
        if node.kind == "number":
            _add_units(node, words.above if usable else words.above[:1], words.below if usable else [])
        if usable and goes_on:
            self._at = at
            if token is None or token.kind is not TokenKind.OPERATOR or self._opens_after(at):
                return
        self._cut = True

    def _words_after(self) -> "_Words":
        at = self._at
        words = _Words(end=at)
        below = after_slash = False
        while at < self._end and at - self._at < MOST_WORDS:
            token = self._tokens[at]
            if token.kind is TokenKind.WORD:
                word = token.text.lower()
                if not after_slash:
                    words.said.append(word)
                after_slash = word == "per"
                below = below or after_slash
                at += 1
                power = self._unit_power(at)
                if not after_slash:
                    (words.below if below else words.above).extend([word] * power)
                at += 2 * (power > 1)
            elif token.kind is TokenKind.OPERATOR and token.text == "/" and self._is_word(at + 1):
                below = after_slash = True
                at += 1
            else:
                break
        words.end = at
        return words

    def _unit_power(self, at: int) -> int:
        """The power of a unit before this place: 2 of cm^2."""
        ahead = self._tokens[at : min(at + 2, self._end)]
        powered = len(ahead) > 1 and ahead[0].text == "^" and ahead[0].glued and ahead[1].kind is TokenKind.NUMBER
        return int(ahead[1].value) if powered and ahead[1].value in (2, 3) else 1

    def _opens_after(self, at: int) -> bool:
        """Whether the operator at this place has something to work on."""
        following = self._tokens[at + 1] if at + 1 < self._end else None
        return following is not None and _opens(following)

    def _is_word(self, at: int) -> bool:
        return at < self._end and self._tokens[at].kind is TokenKind.WORD

    def _is_variable(self, at: int) -> bool:
        """Whether the word at this place is an unknown: a single letter, or letters that touch a number and are no unit."""
        token = self._tokens[at]
        if token.kind is not TokenKind.WORD:
            return False
        word = token.text
        if len(word) == 1:
            return token.glued or word not in ("a", "m", "g", "s", "h", "l", "L")
        before = self._tokens[at - 1]
        if token.glued and before.kind is TokenKind.CLOSE:
            return True
        touches = token.glued and before.kind is TokenKind.NUMBER and len(word) == _SHORT
        return touches and not word.startswith("-") and word.lower() not in _GLUED_UNITS | UNITS.keys()

    def _smaller_follows(self) -> int:
        """How many tokens stand before the second number of 2 hours and 30 minutes; 0 if there is no such number."""
        first, second = self._unit_at(0), self._peek(1)
        if first is None or second is None:
            return 0
        skipped = 2 if second.text.lower() == "and" else 1
        number, smaller = self._peek(skipped), self._unit_at(skipped + 1)
        if number is None or number.kind is not TokenKind.NUMBER or smaller is None:
            return 0
        return skipped if smaller.quantity == first.quantity and smaller.size < first.size else 0

    def _unit_at(self, ahead: int) -> Unit | None:
        token = self._peek(ahead)
        return UNITS.get(token.text.lower()) if token is not None and token.kind is TokenKind.WORD else None


def _opens(token: Token) -> bool:
    if token.kind is TokenKind.OPERATOR:
        return token.text in "+-"
    return token.kind in (TokenKind.NUMBER, TokenKind.FUNCTION) or (token.kind is TokenKind.OPEN and token.match >= 0)


def _is_dash(token: Token, following: Token | None) -> bool:
    """Whether a minus sign with blanks around it is a dash in a sentence."""
    if token.glued or following is None:
        return following is None
    return not following.glued and following.kind is TokenKind.WORD and len(following.text) > 1


def _add_units(node: Node, above: Sequence[str], below: Sequence[str]) -> None:
    words = [word for word in above if word not in ("of", "a", "an", "the", "each", "in")]
    if words and (scale := SCALES.get(words[0].removesuffix("s"))):
        node.scale, words = scale, words[1:]
    if words and words[0] in ("square", "sq", "cubic", "cu"):
        node.nouns = frozenset([" ".join(words[:2])])
        return
    if words and (unit := UNITS.get(words[0])) and not node.percent:
        node.above = (*node.above, *[unit] * (1 + words[1:3].count(words[0])))
    else:
        node.nouns = frozenset(word.removesuffix("s") for word in words)
    under = [word for word in below if word not in ("a", "an", "the", "each")]
    if under and (unit := UNITS.get(under[0])):
        node.below = (unit,)
