"""Programs are found in outputs as people write them, whatever else the output holds."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graders.code.program import BLOCK_END, blocks, program_in

ADD = "def add(a, b):\n    return a + b"
HOSTILE = ["```\n", "```py\na\n```\n", "for x in", " ", "~", "def f(\n", "@a.", "[DONE]\n", "A: b "]
FENCE_LINE = re.compile(r"[ \t]*(`{3,}|~{3,})")
lines = st.text(st.characters(exclude_characters="\n"), max_size=30).filter(lambda line: not FENCE_LINE.match(line))
programs = st.lists(lines, min_size=1, max_size=8).map("\n".join).filter(str.strip)


@pytest.mark.parametrize(
    ("output", "program"),
    [
        (f"```py\nfirst = 1\n```\n```Python\n{ADD}\n```", f"first = 1{BLOCK_END}{ADD}"),
        (f"```python\n{ADD}\n```\nIt prints\n```text\n3\n```", ADD),
        (f"```c\nint x;\n```\n~~~\n{ADD}\n~~~", ADD),
        (f"1. do it:\n   ```python\n   {ADD.replace(chr(10), chr(10) + '   ')}\n   ```", ADD),
        (f"````python\n{ADD}\n```\n````", f"{ADD}\n```"),
        (f"```python\r\n{ADD}\r\n```\r\n", f"{ADD}\r"),
        ("I do not know.", None),
        ("The answer is \\boxed{3}", None),
        ("```python\n\n```", None),
        ("", None),
    ],
)
def test_the_program_of_an_output(output: str, program: str | None) -> None:
    assert program_in(output) == program


def test_an_output_cut_short_counts_only_where_its_block_is_closed() -> None:
    assert program_in(f"```python\n{ADD}\n```\nSo", complete=False) == ADD
    assert program_in(f"```python\nx = 1\n```\nBetter:\n```python\n{ADD}", complete=False) == "x = 1"
    assert program_in(f"```python\n{ADD}", complete=False) is None
    assert program_in(ADD, complete=False) is None


@given(programs, st.sampled_from(["python", "py", "Python3", ""]), st.sampled_from(["```", "~~~~"]), lines, lines)
def test_a_fenced_program_comes_back_unchanged(program: str, tag: str, fence: str, before: str, after: str) -> None:
    output = f"{before}\n{fence}{tag}\n{program}\n{fence}\n{after}"
    assert program_in(output) == program
    assert program_in(output, complete=False) == program
    assert [closed for *_, closed in blocks(output)] == [True]


@given(st.text(alphabet=st.sampled_from([*"`~ \t\r\npython#d=(\x00\ud800é"]), max_size=200), st.booleans())
def test_any_text_is_read(output: str, complete: bool) -> None:
    program = program_in(output, complete=complete)
    assert program is None or program.strip()


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_texts_are_read_in_linear_time(shape: str) -> None:
    began = time.process_time()
    for text in (shape * (10**6 // len(shape)), "```" + shape * (10**6 // len(shape)) + "`"):
        program_in(text)
    assert time.process_time() - began < 10
