"""The verifier `types`: what mypy finds in a step, what of it is sure, and that a check depends on its program alone."""

import random
from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.verifiers.base import Covers, Finding, StepInContext, StepVerdict
from pipeline.verifiers.registry import missing_for
from pipeline.verifiers.settings import TypesConfig
from pipeline.verifiers.types import process
from pipeline.verifiers.types.verifier import Types
from tests.verifiers.programs.generated import fenced
from tests.verifiers.programs.typed import hostile_types, legal_steps, typed_steps

pytestmark = pytest.mark.slow

HEAD = """from typing import Optional, List

def half(n: int) -> float:
    return n / 2

def first(items: List[int]) -> int:
    return items[0]"""


def said(step: str, *earlier: str, problem: str = "") -> Finding:
    """What is said of a block of Python after others."""
    return Types(TypesConfig()).verify(
        StepInContext(problem=problem, earlier=tuple(map(fenced, earlier)), step=fenced(step))
    )


@pytest.mark.parametrize(
    ("source", "evidence"),
    [
        (
            "half('4')",
            'Argument 1 to "half" has incompatible type "str"; expected "int" [arg-type], at line 1: `half(\'4\')`',
        ),
        ("x: int = 'a'", "[assignment], at line 1: `x: int = 'a'`"),
        ("def name(n: int) -> str:\n    return n", "[return-value], at line 2: `return n`"),
        ("y = 'a' + half(3)", "[operator], at line 1"),
        ("half(1, 2)", 'Too many arguments for "half" [call-arg]'),
        ("half(3).upper()", '"float" has no attribute "upper" [attr-defined]'),
        ("import math\nmath.squareroot(2)", "Module has no attribute"),
        ("half(3)[0]", 'Value of type "float" is not indexable [index]'),
        ("z = unknown_name + 1", 'Name "unknown_name" is not defined [name-defined]'),
        ("first((1, 2))", '"tuple[int, int]"; expected "list[int]" [arg-type]'),
    ],
)
def test_a_sure_error_of_types_refutes(source: str, evidence: str) -> None:
    found = said(source, HEAD)
    assert found.verdict is StepVerdict.REFUTED, found
    assert found.covers is Covers.PART
    assert evidence in found.evidence


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\nx = 'a'\ny: str = x",
        "def half(n: str) -> str:\n    return n\nhalf('a').upper()",
        "def late(n: int) -> int:\n    return defined_later(n)",
        "def optional(n: int = None) -> int:\n    return n or 1",
        "def rounded(n: int) -> int:\n    return n / 2",
        "def found(n: int) -> Optional[int]:\n    return None\nfound(2) + 1",
        "first([True]).bit_count()\nfirst([1.5])",
        "half.cache = {}",
        "import numpy as np\nx: int = np.zeros(3)",
        "def untyped(a):\n    return a.b + 1\nuntyped(3)",
        "x: int = 'a'  # type: ignore",
        "nums[0]",
        "class Box:\n    pass\nbox = Box()\nbox.size = 3",
        "[1] + ['a']",
        "math.sqrt(2)",
    ],
)
def test_what_may_be_legal_is_not_refuted(source: str) -> None:
    found = said(source, HEAD, problem="A list nums is given.")
    assert found.verdict is not StepVerdict.REFUTED, found


def test_annotations_without_errors_hold_as_a_part() -> None:
    found = said(HEAD)
    assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.PART)
    assert said("x = 1").verdict is StepVerdict.UNKNOWN
    assert said("def f(x):\n    return x").verdict is StepVerdict.UNKNOWN


def test_a_step_is_not_blamed_for_errors_before_it() -> None:
    wrong = "def name(n: int) -> str:\n    return n"
    assert said(wrong).verdict is StepVerdict.REFUTED
    assert said("name('a')", wrong).verdict is StepVerdict.UNKNOWN
    assert said("def ok(n: int) -> int:\n    return n", wrong).verdict is StepVerdict.HOLDS
    assert said("x = 1", "x = (").verdict is StepVerdict.UNKNOWN
    assert said("x = (").verdict is StepVerdict.REFUTED


@pytest.mark.parametrize(
    "settings",
    [
        "# mypy: ignore-errors", "# mypy: disable-error-code=assignment", "#mypy:ignore-errors=True", "#  MYPY : ignore-errors",
        "# mypy: plugins=os",
    ],
)  # fmt: skip
def test_a_program_sets_nothing(settings: str) -> None:
    found = said(f"{settings}\nx: int = 'a'")
    assert found.verdict is not StepVerdict.HOLDS, found


def test_no_file_of_the_user_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path
    (folder / "mypy.ini").write_text("[mypy]\nignore_errors = True\nplugins = nothing\n")
    (folder / "program.py").write_text("x = 1\n")
    (folder / "bisect.py").write_text("secret = 1\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MYPYPATH", str(folder))
    process._pool.cache_clear()
    assert said("x: int = 'a'").verdict is StepVerdict.REFUTED
    assert said("import bisect\nbisect.secret").verdict is StepVerdict.REFUTED
    for line in ("import pipeline", "import program", "import pytest", "from . import bisect", "import tests.checkout"):
        assert said(f"{line}\nx: int = 1").verdict is StepVerdict.UNKNOWN
    assert sorted(path.name for path in folder.iterdir()) == ["bisect.py", "mypy.ini", "program.py"]


STEPS = [
    HEAD,
    "x: int = 'a'",
    "x: str = 'a'",
    "class int: pass\nx: int = 3",
    "def len(x: str) -> str:\n    return x",
    "y: int = len('a')",
    "import math\nmath.pi = 'a'",
    "from math import *\nz: float = pi",
    "half(3)",
    "def half(n: str) -> str:\n    return n",
    "x = (",
    "import json\nq: int = json.loads('1')",
    "T = int\nv: T = 'a'",
    "from enum import Enum\nclass E(Enum):\n    A = 1\ne: E = E.A",
    "def f(n: int) -> int:\n    return f",
    "class Program:\n    x: int = 'a'",
    "import collections\nc: collections.Counter = 3",
]


def test_a_check_depends_on_its_program_alone() -> None:
    """Programs that change what others may use, in any order, beside fresh processes."""
    steps = [
        StepInContext(problem="", earlier=earlier, step=fenced(step))
        for step in STEPS
        for earlier in ((), (fenced(HEAD),))
    ]
    verifier = Types(TypesConfig())
    expected = [verifier.verify(step) for step in steps]
    assert {found.verdict for found in expected} == set(StepVerdict)
    for seed in range(2):
        order = list(range(len(steps)))
        random.Random(seed).shuffle(order)
        assert [verifier.verify(steps[at]) for at in order] == [expected[at] for at in order]
    process._pool().close()
    process._pool.cache_clear()
    for at in (3, 8, 17):
        assert verifier.verify(steps[at]) == expected[at]


_UNION = "A{now} = Union[{thrice}, dict[int, int]]"
UNIONS = "from typing import Union\nA0 = int\n" + "\n".join(
    _UNION.format(now=n, thrice=", ".join([f"list[tuple[int, str, A{n - 1}]]"] * 3)) for n in range(1, 40)
)


@pytest.mark.parametrize(
    "source",
    [
        "x: int = " + "-" * 15_000 + "1",
        "x: int = " + "(" * 90 + "1" + ")" * 90,
        "f = " + "lambda x: " * 80 + "x",
        "x: int = " + "[" * 95 + "]" * 95,
        UNIONS + "\nx: A39 = 'a'",
        "\n".join(f"def f{n}(x: int) -> int:\n    return f{n + 1}(x)" for n in range(200)),
        "class A(B): pass\nclass B(A): pass\nx: A = 3",
        "x: 'x' = 1",
        "from typing import Protocol\nclass P(Protocol['P']):\n    def f(self) -> 'P': ...\nx: P = 3",
        "type X = list[X]\nx: X = [[]]",
        "import typing\nX = typing.Dict['X', 'X']\nx: X = {}",
        "x: int = " + "{" + ", ".join(f"{n}: {{'a': [{n}]}}" for n in range(900)) + "}",
    ],
    ids=range(12),
)  # fmt: skip
def test_hostile_programs_are_answered(source: str) -> None:
    found = Types(TypesConfig(check_seconds=2.0)).verify(StepInContext(problem="", earlier=(), step=fenced(source)))
    assert isinstance(found, Finding)
    # The process still serves.
    assert said("x: int = 'a'").verdict is StepVerdict.REFUTED


def test_no_hostile_program_holds_and_no_legal_one_is_refuted() -> None:
    verifier = Types(TypesConfig(check_seconds=2.0))
    for name, step in hostile_types().items():
        if "80" not in name and "unions" not in name:
            assert verifier.verify(step).verdict is not StepVerdict.HOLDS, name
    for name, step in legal_steps().items():
        assert verifier.verify(step).verdict is not StepVerdict.REFUTED, name
    for known in typed_steps(32, 5):
        expected = StepVerdict.REFUTED if known.is_wrong else StepVerdict.HOLDS
        assert verifier.verify(known.step).verdict is expected, known


def test_a_limit_that_is_reached_is_unknown() -> None:
    step = StepInContext(problem="", earlier=(), step=fenced("x: int = 1"))
    found = Types(TypesConfig(check_seconds=1e-4)).verify(step)
    assert (found.verdict, found.evidence) == (StepVerdict.UNKNOWN, "mypy does not end within its limits")


def test_without_mypy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_for(TypesConfig()) == ""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert missing_for(TypesConfig()).startswith("needs the package mypy: pip install 'stepvalue[types]'")
    with pytest.raises(UsageError, match=r"pip install 'stepvalue\[types\]'"):
        Types(TypesConfig())


@pytest.mark.parametrize(
    "source",
    [
        "half = lambda s: s\nhalf('4')",
        "half = str.upper\nhalf('4')",
        "try:\n    half('4')\nexcept TypeError:\n    print('a text has no half')",
        "half('4')  # raises a TypeError",
        "def count(x: int) -> int:\n    global total\n    total = x\n    return x\ncount(3)\nprint(total)",
        "import math\nmath.tau2 = 3.0\nprint(math.tau2)",
    ],
)
def test_errors_that_may_be_meant_or_are_none_refute_nothing(source: str) -> None:
    assert said(source, HEAD).verdict is not StepVerdict.REFUTED
