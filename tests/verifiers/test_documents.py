"""The examples of the document are what verifiers say."""

import doctest
import re

import pytest

from pipeline.verifiers.coq import toplevel
from tests.checkout import ROOT


def test_examples_of_the_readme_are_real() -> None:
    run_examples("doctest", least=3)


@pytest.mark.skipif(toplevel.program() is None, reason=f"needs Coq: {toplevel.REMEDY}")
def test_examples_of_coq_are_real() -> None:
    run_examples("doctest: coq", least=1)


def run_examples(marked: str, *, least: int) -> None:
    """Run the examples of the README that a comment marks."""
    text = (ROOT / "pipeline" / "verifiers" / "README.md").read_text("utf-8")
    blocks = re.findall(rf"<!-- {marked} -->\n```python\n(.*?)\n```\n", text, re.DOTALL)
    assert len(blocks) >= least
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README", None, None)
    assert len(examples.examples) > len(blocks)
    said: list[str] = []
    assert doctest.DocTestRunner().run(examples, out=said.append).failed == 0, "".join(said)
