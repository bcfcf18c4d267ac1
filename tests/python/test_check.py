"""`Run.check`: verifiers of the product and an object of a user's class, and their findings."""

import polars as pl
import pytest

from pipeline import Run
from pipeline.core.errors import RunConflict, UsageError
from pipeline.core.tables import FINDINGS
from pipeline.examples.verifier import Evens, EvensConfig
from pipeline.verifiers.base import Finding, StepInContext

pytestmark = pytest.mark.slow


class Zeros(Evens):
    """Looks at the first figure of a step."""

    def verify(self, step: StepInContext) -> Finding:
        return Evens.verify(self, StepInContext(problem="", earlier=(), step=f"{step.step[:1]} is even"))


class Others(Zeros):
    """Other code."""


def test_a_run_is_checked_by_verifiers_and_by_an_object(own: Run) -> None:
    steps = own.labels()["steps"].list.len().sum()
    found = own.check("arithmetic", "algebra", progress=False)
    assert list(found) == ["arithmetic", "algebra"]
    assert found["arithmetic"].counts.steps == steps
    assert f"checked {steps} steps" in repr(found["arithmetic"])
    assert own.verifiers == ["algebra", "arithmetic"]
    assert own.check("arithmetic", progress=False)["arithmetic"].counts == found["arithmetic"].counts
    (mine,) = own.check(Zeros(EvensConfig()), progress=False).values()
    assert mine.name == "evens"
    findings = own.checks("evens")
    assert findings.columns == FINDINGS.schema.names
    firsts = own.labels()["steps"].explode().str.slice(0, 1)
    assert findings.filter(pl.col("verdict") == "refuted").height == (firsts == "1").sum() == mine.counts.refuted > 0
    everything = own.checks()
    assert everything.height == 3 * steps
    assert set(everything["verifier"]) == {"algebra", "arithmetic", "evens"}
    assert own.audit().sound
    with pytest.raises(RunConflict, match="has findings that were made otherwise"):
        own.check(Others(EvensConfig()), progress=False)


def test_mistakes_are_named(run: Run) -> None:
    with pytest.raises(UsageError, match="has no checks by nobody"):
        run.checks("nobody")
    with pytest.raises(UsageError, match="there is no such verifier here"):
        run.check("nobody", progress=False)
    with pytest.raises(UsageError, match="give one object at most"):
        run.check(Evens, Evens, progress=False)
