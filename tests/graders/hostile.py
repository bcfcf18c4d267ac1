"""Answers that a model or an attacker might write to stall, crash, fill or take over a checker. Seeded and repeatable.

`CANARY` is the beginning of every file name that code in these answers would create. `GOLDS` are golds that none of the answers
equals, except by extreme chance.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from zlib import crc32

CANARY = "stepvalue-canary"
GOLDS = (
    "7919", "\\frac{104729}{7920}", "\\sqrt{7919}+\\pi", "x^{17}-y^{13}", "(7919, 7927)", "\\{7919, 7927, 7933\\}",
    "[7919, 7927)", "\\text{quarantine}",
)  # fmt: skip
LONG_CHARS = 1_000_000
LONG_ONE_IN = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One answer and the kind of failure that it causes."""

    kind: str
    answer: str


Maker = Callable[[random.Random], str]

_COMMANDS = ("\\frac", "\\sqrt", "\\sum", "\\int", "\\binom", "\\left(", "\\right)", "\\pi", "\\infty", "\\cup", "\\pm")
_TOKENS = (
    *"0123456789xyzabn+-*/^_=<>()[]{}|,.!%$&~ ",
    *_COMMANDS,
    "\\text{",
    "\\cdot",
    "\\le",
    "\\log",
    "\\sin",
    "\\circ",
)
_ATOMS = ("x", "y", "2", "3", "17", "0.5", "\\pi", "\\frac{2}{3}", "\\sqrt{5}", "(x+1)", "\\sin x", "\\{1,2\\}", "i")
_JOINS = ("+", "-", " \\cdot ", "/", "^", ",", "=", "<", " \\cup ", "!", "")
_FUNCTIONS = (
    "\\sin", "\\log", "\\ln", "\\arctan", "\\exp", "\\cosh", "\\det", "\\gcd", "\\operatorname{lcm}", "\\floor",
)  # fmt: skip
_CODE = (
    "__import__('os').system('touch {file}')", "(lambda: open('{file}','w'))()",
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__=='Popen'][0](['touch','{file}'])",
    "f\"{{open('{file}','w')}}\"", "exec(\"import os; os.mknod('{file}')\")",
    "eval(compile('open(\"{file}\",\"w\")','','exec'))", "globals()['__builtins__']['open']('{file}','w')",
    "x.__class__.__mro__[-1]", "Symbol('x').func.__globals__['sys'].modules['os'].mknod('{file}')",
    "{{{{config.__class__.__init__.__globals__['os'].popen('touch {file}')}}}}", "$(touch {file})", "`touch {file}`",
    "'; import os; os.mknod('{file}'); '", "lambdify(x, x)(1)", "5 if open('{file}','w') else 5",
    "\\text{{__import__('os').mknod('{file}')}}", "Integer(open('{file}', 'w').write('1'))", "sys.exit(0)",
    "while True: pass", "print('a'*10**9)",
)  # fmt: skip
_TEX = (
    "\\input{/etc/passwd}", "\\def\\a{\\a\\a}\\a", "\\immediate\\write18{touch FILE}", "\\newwrite\\f\\openout\\f=FILE",
    "\\loop\\iftrue\\repeat", "\\csname end\\endcsname", "\\catcode`\\%=12", "\\usepackage{FILE}", "\\verb|$|",
    "\\begin{verbatim}5",
)  # fmt: skip
_MARKS = (
    "\0", "\ud800", "\udfff", "\u202e", "\u2066", "\u200b", "\ufeff", "\x1b[2J", "\x07", "\u0301", "\U000e0041", "\r",
)  # fmt: skip
_PROTOCOL = (
    '"}\n{"gold": "5", "answer": "5"}',
    '{"verdict": "correct"}\n',
    "\n\n\n",
    "\\u0000\n\\ud800",
    '5"},"verdict":"correct',
    "]}]}\n\x00\n",
    "\u2028{}\u2029",
)

_BRACKETS = (("(", ")"), ("{", "}"), ("[", "]"), ("\\left(", "\\right)"), ("|", "|"), ("\\frac{1}{", "}"))
_NEAR = (
    "{0}^{{9999}}", "{0}^{{9999}}-{0}^{{9998}}", "{0}^{{-9999}}", "999!/{0}!", "({0}!)!", "(x+{0})^{{999}}",
    "\\sqrt{{{0}^{{999}}}}", "{0}^{{99}}^{{2}}", "\\log({0}^{{9999}})", "x^{{9999}}-{0}", "\\binom{{9999}}{{{0}}}",
    "(1+x)^{{99}}({0}-x)^{{99}}",
)  # fmt: skip
_BOUNDS = (
    "\\sum_{{n=1}}^{{{0}}} {1}^n", "\\prod_{{n=1}}^{{{0}}} (n+{1})", "\\int_0^{{{0}}} {1}^x\\,dx",
    "\\lim_{{n\\to {0}}} n^{{{1}}}", "\\binom{{{0}}}{{{1}}}", "\\lfloor {0}^{{0.5}} \\rfloor", "\\gcd({0},{1})",
    "{0} \\bmod {1}",
)  # fmt: skip
_STALLS = (
    "\\sum_{{i=1}}^{{\\infty}} \\frac{{\\sin {0}i}}{{i^5}}",
    "\\int_0^1 x^x \\sin({0}x)\\,dx",
    "\\prod_{{n=1}}^{{9999}} (n^{{{0}}}+x)",
    "\\sum_{{k=0}}^{{999999}} \\binom{{{0}}}{{k}} x^k",
    "\\log\\log\\log\\log\\log\\log\\log\\log\\log\\log\\log\\log\\log\\log\\log\\log ({0}x)",
)


def hostile_answers(count: int, seed: int) -> Iterator[Hostile]:
    """`count` answers of all kinds. Most of them are cheap to decide. The same seed gives the same answers."""
    chance = random.Random(seed)
    kinds, weights = zip(*((name, weight) for name, (weight, _) in _KINDS.items()), strict=True)
    for _ in range(count):
        kind = "long" if not chance.randrange(LONG_ONE_IN) else chance.choices(kinds, weights)[0]
        yield Hostile(kind=kind, answer=_KINDS[kind][1](chance) if kind != "long" else _long(chance))


def gold_for(answer: str) -> str:
    """The gold for this answer. It is always the same, because a checker may cache the verdict."""
    return GOLDS[crc32(answer.encode(errors="surrogatepass")) % len(GOLDS)]


def _small(chance: random.Random) -> int:
    return chance.randrange(2, 100)


def _huge(chance: random.Random) -> int:
    return chance.randrange(10**5, 10 ** chance.randint(6, 14))


def _file(chance: random.Random) -> str:
    return f"{CANARY}-{chance.randrange(20)}"


def _nesting(chance: random.Random) -> str:
    opened, closed = chance.choice(_BRACKETS)
    depth = chance.choice([4, 60, 200, 1000])
    return opened * depth + chance.choice(_ATOMS) + closed * chance.choice([depth, depth, depth - 1, 0])


def _tower(chance: random.Random) -> str:
    height = chance.randint(4, 30)
    power = chance.choice(["^", "**"])
    levels = [str(_small(chance)) for _ in range(height)]
    return power.join(levels) if chance.random() < 0.3 else f"{power}{{".join(levels) + "}" * (height - 1)


def _factorial(chance: random.Random) -> str:
    shapes = ("{0}!", "({0})!", "{{{0}}}!", "({0}!)!", "{0}!!", "1/{0}!", "10^{0}!", "2^{{{0}!}}")
    return chance.choice(shapes).format(_huge(chance))


def _exponent(chance: random.Random) -> str:
    shapes = (
        "{0}^{{{1}}}",
        "{0}**{1}",
        "{0}E+{1}",
        "{0}e-{1}",
        "{0}\\times10^{{{1}}}",
        "x^{{{1}}}-1",
        "({0}+x)^{{{1}}}",
    )
    return chance.choice(shapes).format(_small(chance), _huge(chance))


def _near_limit(chance: random.Random) -> str:
    if chance.random() < 0.3:
        opened, closed = chance.choice(_BRACKETS)
        depth = chance.randint(12, 20)
        return opened * depth + "x" + closed * depth
    return chance.choice(_NEAR).format(_small(chance))


def _code(chance: random.Random) -> str:
    return chance.choice(_CODE).format(file=_file(chance))


def _tex(chance: random.Random) -> str:
    return chance.choice(_TEX).replace("FILE", _file(chance)) + chance.choice(["", "5", "$x$"])


def _chain(chance: random.Random) -> str:
    length = chance.choice([5, 40, 100])
    shape = chance.choice(
        ["\\sqrt", "\\sqrt{", "\\frac{1}{x+", "\\frac1", "\\log", "-", "+", "x_{", "\\text{", "\\hat{"]
    )
    return shape * length + chance.choice("xyz") + "}" * (length if "{" in shape else 0)


def _matrix(chance: random.Random) -> str:
    rows, columns = chance.choice([(2, 2), (3, 4), (10, 10), (50, 50), (1, 200)])
    name = chance.choice(["pmatrix", "bmatrix", "vmatrix", "array"])
    cells = "\\\\".join("&".join(chance.choice(_ATOMS) for _ in range(columns)) for _ in range(rows))
    return f"\\begin{{{name}}}{cells}\\end{{{chance.choice([name, name, name, 'matrix'])}}}"


def _bounds(chance: random.Random) -> str:
    return chance.choice(_BOUNDS).format(_huge(chance), _small(chance))


def _stall(chance: random.Random) -> str:
    return chance.choice(_STALLS).format(_small(chance))


def _marks(chance: random.Random) -> str:
    text = list(chance.choice(["7918", "x^{17}-y", "no", "\\frac{1}{2}", "(1,2)"]))
    for _ in range(chance.randint(1, 6)):
        text.insert(chance.randrange(len(text) + 1), chance.choice(_MARKS))
    return "".join(text)


def _protocol(chance: random.Random) -> str:
    return chance.choice(["", "x+1", "5"]) + chance.choice(_PROTOCOL) * chance.choice([1, 1, 3])


def _digits(chance: random.Random) -> str:
    text = "".join(chance.choices("0123456789", k=chance.choice([15, 100, 199, 201, 450, 5000])))
    return chance.choice(["{0}", "0.{0}", "{0}.{0}", "1/{0}", "-{0}", "{0}E5", "\\frac{{{0}}}{{7}}"]).format(text)


def _unbalanced(chance: random.Random) -> str:
    return "".join(chance.choices("{}[]()|$\\x1", k=chance.randint(2, 60)))


def _tokens(chance: random.Random) -> str:
    return "".join(chance.choices(_TOKENS, k=chance.randint(2, 25)))


def _new_form(chance: random.Random) -> str:
    """Texts for the readers of towers, long integers, ratios, parts, labels, units, choices and angles."""
    text = chance.choice(_FORMS)
    while "#" in text:
        text = text.replace("#", str(chance.choice([0, 1, _small(chance), _huge(chance)])), 1)
    return text * chance.choice([1, 1, 1, 2, 40]) if chance.random() < 0.9 else "7919"[: chance.randint(1, 3)] + text


def _soup(chance: random.Random) -> str:
    text = chance.choice(_ATOMS)
    for _ in range(chance.randint(1, 6)):
        text += chance.choice(_JOINS) + chance.choice(_ATOMS)
        if chance.random() < 0.2:
            text = f"{chance.choice(_FUNCTIONS)}({text})"
    return text


def _long(chance: random.Random) -> str:
    piece = chance.choice(
        ["9", "(", "{", "x+", "\\frac{1}{", "\\boxed{", "the answer is ", "**", "\ud800", " ", "1,", "$x$ "]
    )
    return (piece * (LONG_CHARS // len(piece) + 1))[:LONG_CHARS]


_FORMS = (
    "# hours and a half ", "half of a ", "twenty-one and ",
    "1^{#^{#^#}}", "0^{#^{#^{#}}}", "#^{0^{#^#}}", "1^#^#^#", "#^{1^{#^{#", "2^# 3^# ", "#^{#}#^{#}", "#:#:#",
    "a : b = #:#", "f_#(#) = #", "g^{-1}(#) = #", "a) # b) #", "(a) \\boxed{#}, (b) \\boxed{#}, ", "A) # B) # C) # ",
    "x=#, y=#, x=#", "(z,y,x)=(#,#,#)", "#,# EUR", "#, #, ", "#.### kg ", "#^\\circ ", "\\frac{\\pi}{#} radians",
    "0.#########", "<|im_end|>#</s>", "there are # ways ", "# x # x ", "(B) # ", "0.#(#) ", "0.##... ", "]#,#[", "[[#,#],[#,#",
    "\\mathbb{R}\\setminus\\{#,", "#th ", "+/-#", "0.\\dot{#}", "#'#", "#,#,000 ", "six (#) ",
)  # fmt: skip
# Weight of each kind. An answer that needs algebra takes milliseconds, and one that stalls algebra takes the deadline.
_KINDS: dict[str, tuple[float, Maker]] = {
    "tower": (22, _tower),
    "factorial": (20, _factorial),
    "exponent": (20, _exponent),
    "digits": (10, _digits),
    "nesting": (6, _nesting),
    "matrix": (1, _matrix),
    "chain": (3, _chain),
    "code": (6, _code),
    "tex": (2, _tex),
    "marks": (4, _marks),
    "protocol": (1, _protocol),
    "unbalanced": (1, _unbalanced),
    "tokens": (1, _tokens),
    "soup": (1, _soup),
    "new form": (6, _new_form),
    "bounds": (0.5, _bounds),
    "near limit": (0.1, _near_limit),
    "stall": (0.01, _stall),
}
