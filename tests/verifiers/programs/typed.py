"""Steps with annotations and known truth: one error of types, or none. Also legal Python that looks like an error."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.verifiers.base import StepInContext
from tests.verifiers.programs.generated import fenced

VALUES: dict[str, tuple[str, ...]] = {
    "int": ("3", "len('abc')", "-7"),
    "str": ("'a'", "str(3)", "'x' * 2"),
    "list[int]": ("[1, 2]", "list(range(3))", "sorted([2, 1])"),
    "dict[str, int]": ("{'a': 1}", "dict(a=1)"),
    "set[int]": ("{1, 2}", "set([3])"),
    "tuple[int, int]": ("(1, 2)", "(3, 4)"),
}
FAMILIES = ("argument", "result", "variable", "operator", "attribute", "count", "name", "index")
LEGAL = {
    "a name with another type": "value = 3\nvalue = 'a'\nresult: str = value.upper()",
    "another name in a loop": "for each in [1, 2]:\n    print(each + 1)\nfor each in 'ab':\n    print(each.upper())",
    "None as a default": "def f(n: int = None) -> int:\n    return n or 0",
    "a name of a later step": "def f(n: int) -> int:\n    return later(n)",
    "an attribute of a function": "def f(n: int) -> int:\n    f.calls += 1\n    return n\nf.calls = 0",
    "an attribute from outside": "class Box:\n    pass\nbox = Box()\nbox.size = 3",
    "lists of other items": "both = [1] + ['a']",
    "a rounded result": "def f(n: int) -> int:\n    return n / 2",
    "a result that may be None": "import re\nprint(re.match('a', 'a').group())",
    "an empty list": "found = []\nfound.append(3)",
    "a dictionary of anything": "d = {}\nd['a'] = 1\nd[3] = 'b'",
    "a module that is not there": "import numpy as np\nx: int = np.zeros(3)",
    "a subclass of anything": "import pandas as pd\nclass Frame(pd.DataFrame):\n    pass\nFrame().head(3)",
    "a decorator": "def twice(g):\n    def inner(*given):\n        return g(*given) * 2\n    return inner\n"
    "@twice\ndef f(n: int) -> int:\n    return n\nf(1, 2)",
    "a conditional import": "try:\n    import ujson as json\nexcept ImportError:\n    import json\njson.dumps(3)",
    "a global that is set later": "def f() -> int:\n    return total\ntotal = 3",
    "a protocol by its methods": "class A:\n    def __len__(self) -> int:\n        return 3\nprint(len(A()))",
    "a lambda": "key = lambda pair: pair[1]\nsorted([(1, 2)], key=key)",
    "a mixed container": "items = [1, 'a', None]\nfor item in items:\n    print(item)",
    "a checked type": "def f(x: object) -> int:\n    if isinstance(x, int):\n        return x + 1\n    return 0",
    "a set of methods": "class S:\n    def __init__(self):\n        self.items = None\n"
    "    def fill(self):\n        self.items = [1]\n        return self.items[0]",
    "a class again": "class A:\n    def f(self) -> int:\n        return 1\n"
    "class A:\n    def g(self) -> int:\n        return 2\nA().g()",
    "a shadowed builtin": "list = [1, 2]\nfirst: int = list[0]",
    "a string that is formatted": "'%d of %s' % (3, 'a')",
    "a number of any kind": "def f(x: float) -> float:\n    return x\nf(3)",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TypedStep:
    """A step and whether its types are wrong."""

    family: str
    step: StepInContext
    is_wrong: bool


def typed_steps(count: int, seed: int) -> Iterator[TypedStep]:
    """Steps with an error of types and without one, in turn."""
    draw = random.Random(seed)
    for number in range(count):
        family = FAMILIES[number // 2 % len(FAMILIES)]
        wrong = bool(number % 2)
        kind, other = draw.sample(sorted(VALUES), 2)
        earlier, source = _program(family, kind, draw.choice(VALUES[other if wrong else kind]), wrong)
        step = StepInContext(problem="", earlier=tuple(map(fenced, earlier)), step=fenced(source))
        yield TypedStep(family=family, step=step, is_wrong=wrong)


def _program(family: str, kind: str, value: str, wrong: bool) -> tuple[tuple[str, ...], str]:
    given = f"def keep(x: {kind}) -> {kind}:\n    return x"
    match family:
        case "argument":
            return (given,), f"kept: {kind} = keep({value})"
        case "result":
            return (), f"def make() -> {kind}:\n    return {value}"
        case "variable":
            return (given,), f"value: {kind} = {value}"
        case "operator":
            right = "'a'" if wrong else "3"
            return ("def size(text: str) -> int:\n    return len(text)",), f"total: int = size('abc') + {right}"
        case "attribute":
            name = "trim" if wrong else "strip"
            return ("def clean(text: str) -> str:\n    return text.lower()",), f"cleaned: str = clean(' a ').{name}()"
        case "count":
            return (given,), f"def use(x: {kind}) -> {kind}:\n    return keep(x{', x' if wrong else ''})"
        case "name":
            return ("amount: int = 3",), f"twice: int = 2 * {'quantity' if wrong else 'amount'}"
    key = "'a'" if wrong else "0"
    return ("def items() -> list[int]:\n    return [1, 2]",), f"chosen: int = items()[{key}]"


def legal_steps() -> dict[str, StepInContext]:
    """Legal Python that none may refute."""
    return {name: StepInContext(problem="", earlier=(), step=fenced(source)) for name, source in LEGAL.items()}


def hostile_types() -> dict[str, StepInContext]:
    """Programs that stall or crash whoever reads them, or that want to set what is checked. None may hold with its error."""
    wrong = "bad: int = 'a'"
    heads = {
        "ignored errors": "# mypy: ignore-errors",
        "ignored errors without blanks": "#mypy:ignore-errors",
        "disabled codes": "# mypy: disable-error-code=assignment",
        "plug-ins": "# mypy: plugins=evil.py",
        "an ignored file": "# type: ignore",
        "another builtins": "import builtins\nbuiltins.int = str",
        "an unreachable rest": "import sys\nif sys.platform == 'nothing':\n    x = 1",
        "a star": "from os import *",
        "no checks": "from typing import no_type_check",
        "an exit": "raise SystemExit",
        "an assertion": "assert False",
    }
    programs = {name: f"{head}\n{wrong}" for name, head in heads.items()}
    for depth in (10, 20, 40, 80):
        union = "\n".join(f"A{n} = Union[list[A{n - 1}], tuple[A{n - 1}, A{n - 1}], int]" for n in range(1, depth))
        programs[f"unions of {depth}"] = f"from typing import Union\nA0 = int\n{union}\nx: A{depth - 1} = 'a'"
        programs[f"lambdas of {depth}"] = f"f = {'lambda x: ' * depth}x\n{wrong}"
        programs[f"lists of {depth}"] = f"x: int = {'[' * depth}1{']' * depth}"
        programs[f"calls of {depth}"] = f"def f(x: int) -> int:\n    return x\ny: str = {'f(' * depth}1{')' * depth}"
        sums = " + ".join(["f(1)"] * depth)
        programs[f"overloads of {depth}"] = f"x: str = {' + '.join(['max(1, 2.0)'] * depth)}\ny: str = {sums}"
        classes = "\n".join(f"class C{n}(C{n - 1}): pass" for n in range(1, depth))
        programs[f"classes of {depth}"] = f"class C0: pass\n{classes}\nx: C0 = 'a'"
        rows = ", ".join("{'a': [1, {'b': (2, 'c')}]}" for _ in range(depth * 5))
        programs[f"literals of {depth}"] = f"x: int = [{rows}]"
        mutual = "\n".join(f"def g{n}(x: int) -> int:\n    return g{(n + 1) % depth}(x)" for n in range(depth))
        programs[f"functions of {depth}"] = f"{mutual}\n{wrong}"
        generic = "\n".join(f"class G{n}(Generic[T], G{n - 1}[list[T]]): pass" for n in range(1, depth))
        programs[f"generics of {depth}"] = (
            f"from typing import Generic, TypeVar\nT = TypeVar('T')\nclass G0(Generic[T]): pass\n{generic}\nx: G0[int] = 3"
        )
    return {name: StepInContext(problem="", earlier=(), step=fenced(source)) for name, source in programs.items()}
