"""Verifiers by name: settings, plug-ins, findings that cannot be, and the examples of the document."""

import doctest
import re
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from pipeline.config.fields import BY_GROUP
from pipeline.config.verify import VerifierConfig
from pipeline.core.errors import PluginError
from pipeline.core.registry import GivenObject
from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.coq import toplevel
from pipeline.verifiers.registry import VERIFIERS, verifier_for, verifier_named
from pipeline.verifiers.settings import (
    AlgebraConfig,
    ArithmeticConfig,
    CodeConfig,
    CoqConfig,
    FactsConfig,
    ProofServerConfig,
    Z3Config,
)
from tests.checkout import ROOT
from tests.verifiers.steps import ASKED

STEP = StepInContext(problem="What is 3 + 5?", earlier=(), step="3 + 5 = 9")


def test_built_in_verifiers() -> None:
    assert VERIFIERS.our_settings() == {
        "arithmetic": ArithmeticConfig,
        "algebra": AlgebraConfig,
        "z3": Z3Config,
        "coq": CoqConfig,
        "proof_server": ProofServerConfig,
        "facts": FactsConfig,
        "code": CodeConfig,
    }
    for name in ASKED:
        made = verifier_named(name)
        assert made.settings.kind == name
        assert made.verify(STEP) == verifier_for(made.settings).verify(STEP)


def test_settings_are_used() -> None:
    assert verifier_for(ArithmeticConfig(most_characters=9)).verify(STEP).verdict is StepVerdict.REFUTED
    assert verifier_for(ArithmeticConfig(most_characters=8)).verify(STEP) == UNKNOWN
    assert verifier_for(AlgebraConfig(most_characters=8)).verify(STEP) == UNKNOWN
    with pytest.raises(ValueError, match=r"verifier\.most_characters"):
        ArithmeticConfig(most_characters=0)


@dataclass(kw_only=True, slots=True)
class OwnConfig(VerifierConfig):
    kind: Annotated[str, BY_GROUP] = "own"


class Own(Verifier):
    """Says what its test wants."""

    Config = OwnConfig
    says: Any = UNKNOWN

    def verify(self, step: StepInContext) -> Finding:
        if isinstance(self.says, Exception):
            raise self.says
        found: Finding = self.says
        return found


def offered() -> GivenObject:
    return GivenObject(made=Own(OwnConfig()), loaded=Own, make=Own, where="tests:Own", code="1")


GOOD = Finding(verdict=StepVerdict.HOLDS, evidence="seen", covers=Covers.WHOLE)
WRONG: dict[str, Any] = {
    "no finding": None,
    "a text": "refuted",
    "another verdict": Finding(verdict="true", evidence="seen"),  # type: ignore[arg-type]
    "another part": Finding(verdict=StepVerdict.HOLDS, evidence="seen", covers="half"),  # type: ignore[arg-type]
    "no evidence": Finding(verdict=StepVerdict.REFUTED),
    "evidence that is no text": Finding(verdict=StepVerdict.REFUTED, evidence=b"seen"),  # type: ignore[arg-type]
    "too much evidence": Finding(verdict=StepVerdict.REFUTED, evidence="x" * 2_001),
    "an error": ZeroDivisionError("by me"),
}


def test_a_verifier_of_somebody_else_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with VERIFIERS.offer("own", offered()):
        assert verifier_named("own").verify(STEP) == UNKNOWN
        monkeypatch.setattr(Own, "says", GOOD)
        assert verifier_named("own").verify(STEP) == GOOD


@pytest.mark.parametrize("says", WRONG.values(), ids=WRONG)
def test_a_wrong_finding_is_blamed_on_its_plug_in(monkeypatch: pytest.MonkeyPatch, says: Any) -> None:
    monkeypatch.setattr(Own, "says", says)
    with (
        VERIFIERS.offer("own", offered()),
        pytest.raises(PluginError, match=r"verifier own of .*tests:Own.* in verify"),
    ):
        verifier_named("own").verify(STEP)


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
