"""The examples of the document are what verifiers say."""

import doctest
import re

from tests.checkout import ROOT

_BLOCK = re.compile(r"<!-- doctest -->\n```python\n(.*?)```", re.DOTALL)


def test_examples_of_the_readme_are_real() -> None:
    blocks = _BLOCK.findall((ROOT / "pipeline" / "verifiers" / "README.md").read_text("utf-8"))
    assert len(blocks) >= 3
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README", None, None)
    assert len(examples.examples) > len(blocks)
    said: list[str] = []
    assert doctest.DocTestRunner().run(examples, out=said.append).failed == 0, "".join(said)
