"""The verifier `code`: whose tests say what, what refutes a step, and what is only doubted."""

import pytest

from pipeline.verifiers.base import Covers, Finding, StepInContext, StepVerdict
from pipeline.verifiers.code.verifier import Code
from pipeline.verifiers.registry import verifier_for
from pipeline.verifiers.settings import CodeConfig
from tests.verifiers.programs.generated import fenced, known_steps

pytestmark = pytest.mark.slow

ASSERTS = "Write a function.\nassert square(3) == 9\nassert square(-4) == 16\n- `assert square(7) == 49`\nassert square(0) == 0"
EXAMPLES = '''def square(x):
    """The square of a number.

    >>> square(3)
    9
    >>> square(-4)
    16
    >>> square(7)
    49
    """
'''
RIGHT = "def square(x):\n    return x * x"
WRONG = "def square(x):\n    return x + x"


@pytest.fixture(scope="module")
def code() -> Code:
    return Code(CodeConfig())


def said(code: Code, *steps: str, problem: str = "") -> Finding:
    """What is said of the last of several steps: blocks of Python, or texts that have some."""
    *earlier, step = (each if "```" in each else fenced(each) for each in steps)
    return code.verify(StepInContext(problem=problem, earlier=tuple(earlier), step=step))


@pytest.mark.parametrize("problem", [ASSERTS, EXAMPLES, fenced(EXAMPLES, "Complete this:")])
def test_tests_of_the_problem_judge_the_step_that_completes_a_function(code: Code, problem: str) -> None:
    found = said(code, RIGHT, problem=problem)
    assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.WHOLE), found
    found = said(code, WRONG, problem=problem)
    assert found.verdict is StepVerdict.REFUTED
    assert "square(3)" in found.evidence
    assert "6" in found.evidence
    assert said(code, "def other(x):\n    return 1", problem=problem).verdict is StepVerdict.UNKNOWN


def test_known_steps_get_no_wrong_verdict(code: Code) -> None:
    for known in known_steps(42, 7):
        found = code.verify(known.step)
        if known.passes:
            covers = Covers.WHOLE if known.proved else Covers.PART
            assert (found.verdict, found.covers) == (StepVerdict.HOLDS, covers), (known, found)
        else:
            assert found.verdict is not StepVerdict.HOLDS, (known, found)


def test_nothing_but_the_whole_is_whole(code: Code) -> None:
    for text in (
        fenced(RIGHT, "This squares a number."),
        fenced(f"{RIGHT}\nprint(square(2))"),
        fenced(f"{RIGHT}\ndef cube(x):\n    return x"),
        fenced("def square(x):\n    return {3: 9, -4: 16, 7: 49, 0: 0}[x]"),
    ):
        found = code.verify(StepInContext(problem=ASSERTS, earlier=(), step=text))
        assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.PART), (text, found)
    few = said(code, RIGHT, problem="assert square(3) == 9\nassert square(2) == 4")
    assert (few.verdict, few.covers) == (StepVerdict.HOLDS, Covers.PART)
    same = said(code, "def one(x):\n    return 1", problem="assert one(3) == 1\nassert one(2) == 1\nassert one(5) == 1")
    assert same.covers is Covers.PART
    enough = verifier_for(CodeConfig(least_tests=2))
    step = StepInContext(problem="assert square(3) == 9\nassert square(5) == 25", earlier=(), step=fenced(RIGHT))
    assert enough.verify(step).covers is Covers.WHOLE


def test_what_objects_of_a_program_decide_proves_a_part(code: Code) -> None:
    truth = "class Truth:\n    def __bool__(self):\n        return True\ndef is_square(n):\n    return Truth()"
    found = said(code, f"{RIGHT}\n{truth}", problem=f"{ASSERTS}\nassert is_square(7)")
    assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.PART), found
    asked = "assert ordered([3, 1]) == [1, 3]\nassert ordered([5, 4]) == [4, 5]\nassert ordered([9, 7, 8]) == [7, 8, 9]"
    assert said(code, "def ordered(xs):\n    return sorted(xs)", problem=asked).covers is Covers.WHOLE
    changed = said(code, "def ordered(xs):\n    xs.sort()\n    return xs", problem=asked)
    assert (changed.verdict, changed.covers) == (StepVerdict.HOLDS, Covers.PART), changed


@pytest.mark.parametrize(
    ("source", "evidence"),
    [
        (fenced("assert 1 + 1 == 3", "We can use a set instead of a list."), "assert 1 + 1 == 3 fails: 1 + 1 is 2"),
        ("assert all(0.5 < x for x in [0.3]), 'wrong'", "assert all(0.5 < x for x in [0.3]), 'wrong' fails"),
        ("xs = [1, 2]\nxs[5]", "IndexError: list index out of range, at `xs[5]`"),
        ("{'a': 1}['b']", "KeyError: 'b', at `{'a': 1}['b']`"),
        ("s = [1, 2]\nassert s.pop() == 1", "assert s.pop() == 1 fails"),
        ("def f(x):\n    return x.y\nf(3)", "AttributeError: 'int' object has no attribute 'y', at `return x.y`"),
        ('def f(x):\n    """\n    >>> f(2)\n    4\n    """\n    return x', "its own test f(2) gives 2, not 4"),
        ("def f():\n    return 2\ndef test_f():\n    assert f() == 3", "its own test test_f() fails: f() is 2"),
    ],
)
def test_a_cell_that_goes_wrong_is_refuted(code: Code, source: str, evidence: str) -> None:
    found = said(code, "import math", source)
    assert (found.verdict, found.evidence) == (StepVerdict.REFUTED, evidence)


@pytest.mark.parametrize(
    "source",
    [
        "import numpy\nassert numpy.zeros(1) == 1", "open('data.csv')", "x = int(input())",
        "import random\nassert random.random() > 2", "import time\nassert time.time() == 0",
        "from datetime import datetime\nassert datetime.now() is None", "raise SystemExit(1)", "raise NotImplementedError",
        "def f(n):\n    return f(n + 1)\nf(0)", "x = 'a' * 10 ** 10", "assert 0.1 + 0.2 == 0.3", "assert 0.1 + 0.2 <= 0.3",
        "y = math.sqrt(2)",
        "1 / 0  # this raises an error", "%matplotlib inline\nx = (", "    total += 1\nreturn total", "print 'hello'",
        "else:\n    x = 1", "x = [1, 2, ...\n...\n]", "assert {'b', 'a', 'c'}.pop() == 'c'",
        "assert list({'b', 'a', 'c'}) == ['a', 'b', 'c']",
        "letters = set('bac')\nfor letter in letters:\n    first = letter\n    break\nassert first == 'a'",
        "assert [x for x in frozenset('bac')][0] == 'c'", "a, *_ = set('bac')\nassert a == 'z'",
        "assert ''.join(set('ab') | set('c')) == 'abc'", "async def three():\n    return 3\nx = await three()\nassert x == 3",
        "total = subtotal + 1", "def main():\n    return helper(3)\nassert main() == 9", "@twice\ndef f():\n    return 1",
        "nums[0]", "x = (1,", "def f(x):", "s = \"\"\"first", "return 3", "try:\n    x = 1", "-x = 1\n+x = 2",
        "SELECT * FROM t", "for each x in xs:\n    add x", "type X = int", "$ python main.py",
        "import math\nmath.sumprod([1], [2])", "(5).is_integer()",
        "'aa'.replace('a', 'b', count=1)", "import sys\nassert sys.version_info > (4, 0)", "str.split(sep=None)",
        "xs = [1, ...]\nsum(xs)", "int('...')", "from datetime import datetime\nassert datetime.fromtimestamp(0).hour == 25",
        "class P:\n    pass\nP(1)", "class P:\n    pass\nP().run()", "class P:\n    pass\nassert P() == P()",
        "assert all(x + 0.1 == y for x, y in [(0.2, 0.3)])", "assert not 0.1 + 0.2 > 0.3",
        "assert 1 == 2  # doctest: +SKIP", 'assert 1 == 2, "this shows the bug"',
        "assert 1 == 2  # ✗", "assert 1 == 2  # AssertionError", "def test_wrong():\n    assert 1 == 2", "assert False",
        "def check(x):\n    raise ValueError('negative')\ncheck(-1)", "a = 0.1 + 0.2\nassert a == 0.3 and a < 1",
        "assert str(object()) == 'x'", "def g():\n    yield 1\n    ...\nassert list(g()) == [1, 2]",
        *(
            f'def f(x):\n    """\n    >>> {example}\n    """\n    return {value}'
            for example, value in (
                ("f(2)  # doctest: +SKIP\n    5", "x"), ("f(2)  # doctest:+SKIP\n    5", "x"), ("f(2)", "x"),
                ("f(2)  # doctest: +NUMBER\n    5", "x"), ("f(3)\n    0.3", "1 / x"), ("f(1000)\n    1,000", "x"),
                ("f(9)  # doctest: +ELLIPSIS\n    [0, ..., 9]", "list(range(x))"), ("id(f)\n    1", "x"),
                ("f(2)\n    5", "g(x)"),
                ("f({'b', 'a'})\n    ['b', 'a', 'c']", "list(x)"), ("f(0)\n    ValueError: zero", "1 // x"),
            )
        ),
        *(
            fenced(source, words)
            for source in ("[1][2]", "assert 1 + 1 == 3")
            for words in (
                "This raises an error:", "The wrong way is", "First attempt:", "You cannot write", "It is false that",
                "It is not so:", "Suppose we write", "What happens here?", "Instead of", "If we wrote", "这会报错", "He claims",
            )
        ),
    ],
)  # fmt: skip
def test_what_may_be_right_elsewhere_is_unknown(code: Code, source: str) -> None:
    found = said(code, source)
    assert found.verdict is StepVerdict.UNKNOWN, found


FIX = f"Fix this:\n{fenced(WRONG)}\n{ASSERTS}"
PAIR = "Pairs in any order.\nassert pair(1, 2) == [1, 2]\nassert pair(3, 4) == [3, 4]\nassert pair(5, 6) == [5, 6]"
EVENS = "assert list(evens(3)) == [0, 2, 3]\nassert list(evens(1)) == [0, 1]\nassert list(evens(0)) == [0]"


@pytest.mark.parametrize(
    ("problem", "steps", "last"),
    [
        (ASSERTS, ("def square(x):\n    return times(x, x)", "def times(a, b):\n    return a * b"), "holds"),
        (ASSERTS, ("def square(x):\n    try:\n        return times(x, x)\n    except Exception:\n        pass",), "unknown"),
        (ASSERTS, ("def square(x):\n    return x ** POWER", "POWER = 2"), "holds"),
        (ASSERTS, ("def square(x):\n    return mul(x, x)", "from operator import mul", "square(2)"), "unknown"),
        (ASSERTS, ("def square(x):\n    result = 0", "    return x * x"), "unknown"),
        (ASSERTS, ("def square(x):\n    result = 0\n    # ... the rest of it\n    return result", RIGHT), "holds"),
        (ASSERTS, (fenced("def square(x):\n    return 0", "A stub:"), WRONG), "refuted"),
        (ASSERTS, (f"The base case:\n{fenced(WRONG)}", f"It adds:\n{fenced(WRONG)}", RIGHT), "holds"),
        *((ASSERTS, (f"def square(x):\n    {each}",), "unknown") for each in ("pass", "...", "raise NotImplementedError")),
        (ASSERTS, ("# TODO: negative numbers\ndef square(x):\n    return 9",), "unknown"),
        (f"One of these tests should fail.\n{ASSERTS}", (WRONG,), "unknown"),
        (EVENS, ("def evens(n):\n    for x in range(0, n, 2):\n        yield x", "    yield n"), "unknown"),
        (EVENS, ("def evens(n):\n    yield from range(0, n, 2)\n    yield n",), "holds"),
        (ASSERTS, (RIGHT, RIGHT), "holds"),
        (FIX, (f"It adds:\n{fenced(WRONG)}", RIGHT), "holds"),
        (FIX, ("def square(x):\n    return x + x + 1",), "refuted"),
        (ASSERTS, (fenced(WRONG, "If the number is less than 2, return False, else the root is tried."),), "refuted"),
        (PAIR, ("def pair(a, b):\n    return [b, a]",), "unknown"),
        (PAIR.replace(" in any order", ""), ("def pair(a, b):\n    return [b, a]",), "refuted"),
        ("Now:\n>>> square(3)\n6\nWanted:\n>>> square(3)\n9", (RIGHT,), "unknown"),
        ("The incorrect result is\n>>> square(3)\n6", (RIGHT,), "unknown"),
        (">>> square(3)  # doctest: +SKIP\n6\n>>> square(4)\n16", (WRONG,), "refuted"),
        (">>> square(3)  # doctest: +SKIP\n6\n>>> square(4)\n16", (RIGHT,), "holds"),
        (">>> square('a')\nTypeError: no number", (RIGHT,), "unknown"),
        ("", (f"{RIGHT}\nassert square(3) == 9", f"{WRONG}\nassert square(3) == 6"), "holds"),
        ("", (f"{RIGHT}\nassert square(3) == 9", f"{WRONG}\nassert square(3) == 9"), "refuted"),
        ("", ("xs = [1]", "Then:\n```\nxs.append(2)\n```", "xs[1]"), "unknown"),
        ("", ("xs = [1]", "It prints\n```\n[1]\n```", "xs[1]"), "refuted"),
        ("", ("class S:\n    items = []", "S().push(1)"), "unknown"),
        ("", ("class S:\n    items = []\nS().items[0]",), "refuted"),
    ],
)  # fmt: skip
def test_a_step_that_a_later_one_completes_is_not_refuted(
    code: Code, problem: str, steps: tuple[str, ...], last: str
) -> None:
    verdicts = [said(code, *steps[:at], problem=problem).verdict.value for at in range(1, len(steps) + 1)]
    assert "refuted" not in verdicts[:-1]
    assert verdicts[-1] == last


def test_the_first_failing_step_is_refuted_and_no_later_one(code: Code) -> None:
    steps = ("a = [1]", "a[3]", "b = 1", "a[4]")
    verdicts = [said(code, *steps[:at]).verdict for at in range(1, 5)]
    assert verdicts == [StepVerdict.UNKNOWN, StepVerdict.REFUTED, StepVerdict.UNKNOWN, StepVerdict.UNKNOWN]
    later = said(code, WRONG, "1 / 0", problem=ASSERTS)
    assert later.verdict is StepVerdict.UNKNOWN
    assert later.evidence.startswith("step 1 goes wrong before it: the problem's test")
    documented = 'def f(x):\n    """\n    >>> f(2)\n    4\n    """\n    return x'
    after = said(code, documented, "1 / 0")
    assert after.evidence == "step 1 goes wrong before it: its own test f(2) gives 2, not 4"
    assert said(code, documented.replace("4\n", "2.001\n"), "1 / 0").verdict is StepVerdict.REFUTED
    assert said(code, "x = (", "1 / 0").verdict is StepVerdict.UNKNOWN


def test_a_step_is_not_blamed_for_what_an_earlier_one_defines(code: Code) -> None:
    helper = "def double(x):\n    return x * 3"
    found = said(code, helper, "def square(x):\n    return double(x) * x // 2", problem=ASSERTS)
    assert found.verdict is StepVerdict.UNKNOWN
    assert found.evidence.endswith("but step 1 defines double")
    for step in ("assert double(2) == 4", "double(None)", "[1, 2, 3, 4][double(2)]"):
        assert said(code, helper, step).verdict is StepVerdict.UNKNOWN, step
    assert said(code, helper, "double('a', 2)").verdict is StepVerdict.REFUTED


def test_a_step_that_is_python_as_a_whole_is_a_cell(code: Code) -> None:
    def of(step: str) -> Finding:
        return code.verify(StepInContext(problem=ASSERTS, earlier=(), step=step))

    assert of(RIGHT).covers is Covers.WHOLE
    assert of(WRONG).verdict is StepVerdict.REFUTED
    for text in ("x = 5", "So the answer is 4.", "y = z + 2", "import this into Excel"):
        assert of(text) == Finding(verdict=StepVerdict.UNKNOWN)


def test_equal_steps_get_equal_findings(code: Code) -> None:
    steps = [known.step for known in known_steps(12, 3)]
    first = [code.verify(step) for step in steps]
    assert [code.verify(step) for step in reversed(steps)] == first[::-1]
    assert [Code(CodeConfig()).verify(step) for step in steps[:2]] == first[:2]
    sets = said(code, "assert list({'a', 'b', 'c'}) == []")
    assert sets == said(Code(CodeConfig()), "assert list({'a', 'b', 'c'}) == []")


@pytest.mark.parametrize(
    "source",
    [
        "answers = iter((9, 16, 49, 0))\ndef square(x):\n    return next(answers)",
        "def square(x, calls=[]):\n    calls.append(x)\n    return [9, 16, 49, 0][len(calls) - 1]",
        "calls = 0\ndef square(x):\n    global calls\n    calls += 1\n    return [9, 16, 49, 0][calls - 1]",
        "def square(x):\n    square.calls = getattr(square, 'calls', 0) + 1\n    return [9, 16, 49, 0][square.calls - 1]",
        "class Kept:\n    calls = []\ndef square(x):\n    Kept.calls.append(x)\n    return [9, 16, 49, 0][len(Kept.calls) - 1]",
    ],
)
def test_a_function_that_counts_its_calls_is_not_proved(code: Code, source: str) -> None:
    assert said(code, source, problem=ASSERTS).covers is Covers.PART


@pytest.mark.parametrize(
    "source",
    [
        "assert len(set('aab')) == 2", "assert sorted({3, 1}) == [1, 3]", "assert sum(x for x in {1, 2}) == 3",
        "seen = set()\nseen.add(2)\nassert 2 in seen", "assert {x + 1 for x in {1, 2}} == {2, 3}",
    ],
)  # fmt: skip
def test_sets_without_their_order_have_a_verdict(code: Code, source: str) -> None:
    assert said(code, source).verdict is StepVerdict.HOLDS
