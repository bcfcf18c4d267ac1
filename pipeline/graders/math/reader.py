r"""Parses LaTeX arithmetic. A text is parsed completely or not at all. Pure.

It reads + - * / ^ and products by juxtaposition of numbers, letters with subscripts, powers (2^{3}5^{2}), `\pi`, \frac,
\sqrt[n], brackets, |x|, small factorials and binomials, and elementary functions, with exact values of trigonometric functions
at multiples of 30 and 45 degrees. It does not read text with two meanings: a/bc, 2\frac12, x2, f(x), words.
"""

import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from pipeline.graders.math.limits import MAX_EXPONENT, MAX_READ_FACTORIAL
from pipeline.graders.math.ratio import IMAGINARY, Ratio, TooLargeError, constant, evaluate, generator, rational_power

# Names of generators are letters, commands and numerals. The name of an opaque term, which is not expanded, begins with this.
OPAQUE = "?"
PI = "\\pi"

_TOKEN = re.compile(r"\s*(\\[A-Za-z]+|\\[{}|]|(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+|\S)")
# A run of letters may be a word or a product.
_RUN_OF_LETTERS = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{3,}")
_SMALL_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi omega"
)
_OTHER_SYMBOLS = "pi varepsilon vartheta varphi Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell"
GREEK, _OTHERS = (tuple(f"\\{name}" for name in names.split()) for names in (_SMALL_GREEK, _OTHER_SYMBOLS))
_SYMBOLS = frozenset(GREEK + _OTHERS)
# Letters that, before a bracket, are more likely the name of a function than a factor.
_FUNCTION_NAMES = frozenset("fghFGHPQ")
_TIMES = ("*", "\\cdot", "\\times", "\\ast")
_OVER = ("/", "\\div")
_CLOSER = {"(": ")", "[": "]", "{": "}", "\\{": "\\}", "|": "|", "\\lvert": "\\rvert"}
_PERIODIC = frozenset({"\\sin", "\\cos", "\\tan", "\\sec", "\\csc", "\\cot"})
# \\log without a base may have base 10 or e, so it has no value here.
_NAMED_AS_IN_LIBRARIES = ("sin", "cos", "tan", "exp", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan")
_FUNCTIONS = _PERIODIC | {"\\ln", "\\log"} | {f"\\{name}" for name in _NAMED_AS_IN_LIBRARIES}
_FIRST_OF_FACTOR = _SYMBOLS | _FUNCTIONS | {"(", "{", "\\frac", "\\sqrt", "\\binom", "\\lvert"}
# sin(r pi) by r, as a base and an exponent that are rational numbers.
_SINES = {
    Fraction(0): (Fraction(0), Fraction(1)),
    Fraction(1, 6): (Fraction(1, 2), Fraction(1)),
    Fraction(1, 4): (Fraction(1, 2), Fraction(1, 2)),
    Fraction(1, 3): (Fraction(3, 4), Fraction(1, 2)),
    Fraction(1, 2): (Fraction(1), Fraction(1)),
}


class UnreadableError(ValueError):
    """The text is not arithmetic that this module reads, or it has two meanings."""


class UndefinedError(ArithmeticError):
    """The text is arithmetic without a value: it divides by zero, or has 0^0 or the logarithm of zero."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The number type in which terms are evaluated: floating point in `expression`, more digits in `algebra`.

    The keys of `functions` are LaTeX commands, and also "power", "abs" and "log" (base, argument). `turn` and `negative` select
    the point at which variables are evaluated. A function of an argument above `largest_angle` has no value.
    """

    exact: Callable[[Any], Any]
    functions: Mapping[str, Callable[..., Any]]
    constants: Mapping[str, Any]
    largest_angle: float
    turn: int = 0
    negative: bool = False

    def point(self, name: str) -> Any:
        """The value of a variable, between 0.2 and 0.9 in magnitude. It depends only on the name, `turn` and `negative`."""
        point = Fraction(20_000 + zlib.crc32(f"{name}{self.turn or ''}".encode()) % 70_000, 100_000)
        return self.exact(-point if self.negative else point)


def functions_of(library: Any) -> dict[str, Callable[..., Any]]:
    """The `functions` of `Numbers` from `cmath` or from a context of mpmath, which name them alike."""
    return {
        **{f"\\{name}": getattr(library, name.replace("arc", "a")) for name in _NAMED_AS_IN_LIBRARIES},
        "\\ln": library.log, "\\log": lambda _: math.nan, "\\sec": lambda x: 1 / library.cos(x),
        "\\csc": lambda x: 1 / library.sin(x), "\\cot": lambda x: 1 / library.tan(x), "abs": lambda x: abs(x) + 0j,
        "power": lambda base, exponent: base**exponent, "log": lambda base, x: library.log(x) / library.log(base),
    }  # fmt: skip


def read_expression(text: str, numbers: Numbers) -> tuple[Ratio, dict[str, Any], tuple[Ratio, ...]]:
    """The exact content of a text, the value of each generator in it, and what the text divides by that is no number.

    Raises UndefinedError for a text that is read completely and divides by zero, also where that is multiplied away. Raises
    UnreadableError, ArithmeticError (too large) and RecursionError for others.
    """
    if _RUN_OF_LETTERS.search(text):
        raise UnreadableError
    reader = _Reader(text, numbers)
    ratio = reader.sum()
    reader.expect("")
    if reader.is_undefined:
        raise UndefinedError
    return ratio, reader.values, tuple(reader.divisors)


class _Reader:
    """A recursive descent parser of one text. The limits on brackets and powers bound its depth."""

    def __init__(self, text: str, numbers: Numbers) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._at = 0
        self._numbers = numbers
        self.values: dict[str, Any] = {}
        self.divisors: list[Ratio] = []
        self._angles = 0
        self._after_power = False
        self.is_undefined = False

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, *tokens: str) -> str:
        """The next token if it is one of these, which is then taken, else an empty text."""
        return self._take() if self._peek() in tokens else ""

    def expect(self, token: str) -> None:
        """Take the next token. Raises UnreadableError if it is another one."""
        if self._take() != token:
            raise UnreadableError

    def sum(self) -> Ratio:
        """Read terms as far as they go."""
        total = self._signed(self._product)
        while sign := self._accept("+", "-"):
            term = self._signed(self._product)
            total = total - term if sign == "-" else total + term
        return total

    def _signed(self, operand: Callable[[], Ratio]) -> Ratio:
        negative = False
        while sign := self._accept("+", "-"):
            negative ^= sign == "-"
        return -operand() if negative else operand()

    def _product(self) -> Ratio:
        result = self._factor()
        divided = False
        while token := self._peek():
            if self._accept(*_TIMES):
                result *= self._signed(self._factor)
                divided = False
            elif self._accept(*_OVER):
                # a/(b)c has one meaning, a/bc has two.
                divided = self._peek() != "("
                result = self._divided(result, self._signed(self._factor))
            elif self._opens_factor(token) or self._opens_power(token):
                if divided:
                    raise UnreadableError
                before = self._tokens[self._at - 1]
                mixed = before[0].isdigit() and token == "\\frac"
                factor = self._factor()
                if mixed and factor.rational() is not None:
                    raise UnreadableError
                result *= factor
            else:
                break
        return result

    def _opens_power(self, token: str) -> bool:
        """Whether a power of a number follows a power, as in 2^{3}5^{2}. Other numbers side by side have two meanings."""
        following = self._tokens[self._at + 1 : self._at + 3]
        return self._after_power and token.isdigit() and following[:1] == ["^"] and following[1:] != ["\\circ"]

    @staticmethod
    def _opens_factor(token: str) -> bool:
        """Whether a token after a factor can begin another factor. A number cannot: x2, (3)4 and 5 6 have two meanings."""
        return token in _FIRST_OF_FACTOR or token[0].isalpha()

    def _factor(self) -> Ratio:
        base = self._base()
        self._after_power = False
        while mark := self._accept("^", "!"):
            if mark == "!":
                base = constant(math.factorial(_natural(base)))
                self._after_power = False
            elif self._accept("\\circ"):
                if not self._angles:
                    raise UnreadableError
                base *= self._named(PI) / constant(180)
            else:
                base = self._power(base, self._exponent())
                self._after_power = True
                if self._peek() == "^":
                    # 2^2^3 may mean 2^(2^3) or (2^2)^3.
                    raise UnreadableError
        return base

    def _exponent(self) -> Ratio:
        negative = self._accept("-")
        token = self._peek()
        if not (token in ("{", "(") or token in _SYMBOLS or token.isdigit() or token[:1].isalpha()):
            raise UnreadableError
        return -self._base() if negative else self._base()

    def _base(self) -> Ratio:
        token = self._peek()
        if token in ("(", "{", "[", "|", "\\lvert"):
            inside = self._group()
            return self._opaque("abs", [inside]) if token in ("|", "\\lvert") else inside
        self._take()
        if token[:1].isdigit() or (token[:1] == "." and token != "."):
            return constant(Fraction(token.replace(",", "")))
        if token.isalpha() or token in _SYMBOLS:
            if token in _FUNCTION_NAMES and self._peek() == "(":
                raise UnreadableError
            return self._named(token + self._subscript())
        if token == "\\frac":
            return self._divided(self._group("{"), self._group("{"))
        if token == "\\sqrt":
            return self._root()
        if token == "\\binom":
            return constant(math.comb(_natural(self._group("{")), _natural(self._group("{"))))
        if token in _FUNCTIONS:
            return self._function(token)
        raise UnreadableError

    def _divided(self, dividend: Ratio, divisor: Ratio) -> Ratio:
        if not divisor.top:
            return self._undefined()
        if divisor.rational() is None:
            self.divisors.append(divisor)
        return dividend / divisor

    def _undefined(self) -> Ratio:
        """Any value for a term that has none. The text is read on, because it may have another meaning, as 1/0.5 has."""
        self.is_undefined = True
        return constant(1)

    def _group(self, opener: str | None = None) -> Ratio:
        token = self._take()
        if token not in _CLOSER or (opener and token != opener):
            raise UnreadableError
        inside = self.sum()
        self.expect(_CLOSER[token])
        return inside

    def _subscript(self) -> str:
        if not self._accept("_"):
            return ""
        name = self._take()
        if name == "{":
            end = self._tokens.index("}", self._at)
            name = "".join(self._tokens[self._at : end])
            self._at = end + 1
        elif len(name) != 1 or not name.isalnum():
            raise UnreadableError
        return f"_{name}"

    def _named(self, name: str) -> Ratio:
        constants = self._numbers.constants
        self.values[name] = constants[name] if name in constants else self._numbers.point(name)
        return generator(name)

    def _root(self) -> Ratio:
        degree = self._group("[") if self._peek() == "[" else constant(2)
        inside = self._base()
        order = degree.rational()
        if order is None or order.denominator != 1 or order < 2:
            raise UnreadableError
        value = inside.rational()
        negative = value is not None and value < 0 and order % 2
        root = self._power(-inside if negative else inside, constant(1 / order))
        return -root if negative else root

    def _power(self, base: Ratio, exponent: Ratio) -> Ratio:
        power, value = exponent.rational(), base.rational()
        if power is not None:
            if abs(power) > MAX_EXPONENT:
                raise UnreadableError
            if power <= 0 and not base.top:
                return self._undefined()
            if power.denominator == 1:
                if power < 0 and value is None:
                    self.divisors.append(base)
                try:
                    return base ** int(power)
                except TooLargeError:
                    pass
            if value is not None and value > 0:
                root = rational_power(value, power)
                if root is not None:
                    return root
            if value is not None and value < 0 and power == Fraction(1, 2):
                return self._named(IMAGINARY) * self._power(-base, exponent)
            if value == 0 and power > 0:
                return constant(0)
        return self._opaque("power", [base, exponent])

    def _function(self, name: str) -> Ratio:
        if name == "\\log" and self._accept("_"):
            return self._logarithm(self._base())
        power = self._exponent() if self._accept("^") else None
        if power and (power.rational() or 0) <= 0:
            raise UnreadableError
        self._angles += name in _PERIODIC
        argument = self._argument()
        self._angles -= name in _PERIODIC
        if name == "\\ln" and not argument.top:
            return self._undefined()
        try:
            result = _known_value(name, argument)
        except ZeroDivisionError:
            return self._undefined()
        if result is None:
            result = self._opaque(name, [argument])
        return result if power is None else self._power(result, power)

    def _logarithm(self, base: Ratio) -> Ratio:
        argument = self._argument()
        b, x = base.rational(), argument.rational()
        if 0 in (b, x) or b == 1:
            return self._undefined()
        if b is not None and x is not None and b > 1 and x > 0:
            power = round(math.log(x) / math.log(b))
            if abs(power) <= MAX_EXPONENT and b**power == x:
                return constant(power)
        return self._opaque("log", [base, argument])

    def _argument(self) -> Ratio:
        """The argument of a function: one bracket, or a product of simple factors as in \\sin 2\\pi x."""
        bracketed = self._peek() in ("(", "{", "|", "\\lvert")
        result = self._factor()
        while (
            not bracketed
            and (token := self._peek())
            and self._opens_factor(token)
            and token not in _FUNCTIONS
            and token != "("
        ):
            result *= self._factor()
        return result

    def _opaque(self, name: str, arguments: list[Ratio]) -> Ratio:
        """A term that is treated as a new variable, with its value at the fixed point."""
        numbers = self._numbers
        described = "; ".join(argument.key() for argument in arguments)
        # The name is a digest, because a name that contains the names of nested terms would grow without bound.
        key = f"{OPAQUE}{name} {blake2b(described.encode(), digest_size=16).hexdigest()}"
        points = [evaluate(argument, self.values, numbers.exact) for argument in arguments]
        steady = all(abs(value) < numbers.largest_angle and scale < numbers.largest_angle for value, scale in points)
        self.values[key] = numbers.functions[name](*(value for value, _ in points)) if steady else math.nan
        return generator(key)


def _known_value(name: str, argument: Ratio) -> Ratio | None:
    """The exact value of a function at an argument, or None if it has no simple one. Raises ZeroDivisionError at a pole."""
    if name == "\\ln":
        terms = list(argument.top.items())
        whole = len(argument.bottom) == len(terms) == 1 and terms[0][1] == 1
        if whole and all(base == "e" for base, _ in terms[0][0]):
            return constant(terms[0][0][0][1] if terms[0][0] else 0)
        return None
    if name not in _PERIODIC or len(argument.bottom) != 1 or any(term != ((PI, 1),) for term in argument.top):
        return None
    turns = Fraction(argument.top.get(((PI, 1),), 0))
    sine, cosine = _sine(turns), _sine(turns + Fraction(1, 2))
    if sine is None or cosine is None:
        return None
    one = constant(1)
    quotients = {
        "\\sin": (sine, one), "\\cos": (cosine, one), "\\tan": (sine, cosine), "\\cot": (cosine, sine), "\\sec": (one, cosine),
        "\\csc": (one, sine),
    }  # fmt: skip
    dividend, divisor = quotients[name]
    return dividend / divisor


def _sine(half_turns: Fraction) -> Ratio | None:
    """sin(r pi), or None if it is not a root of a rational number."""
    angle = half_turns % 2
    negative = angle > 1
    angle %= 1
    known = _SINES.get(min(angle, 1 - angle))
    if known is None:
        return None
    value = rational_power(*known) if known[0] else constant(0)
    return -value if negative and value else value


def _natural(ratio: Ratio) -> int:
    value = ratio.rational()
    if value is None or value.denominator != 1 or not 0 <= value <= MAX_READ_FACTORIAL:
        raise UnreadableError
    return int(value)
