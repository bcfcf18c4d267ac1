"""`Run.check`: verifiers of the product and an object of a user's class, and their findings."""

from dataclasses import dataclass
from typing import Annotated

import polars as pl
import pytest

from pipeline import Run, label
from pipeline.config.fields import BY_GROUP
from pipeline.config.verify import VerifierConfig
from pipeline.core.errors import RunConflict, UsageError
from pipeline.core.schemas import FINDINGS
from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict, Verifier
from tests.python.test_label import ROWS
from tests.runtime.without_ray import python_without_ray

pytestmark = [pytest.mark.slow, pytest.mark.ray]


@dataclass(kw_only=True, slots=True)
class LongConfig(VerifierConfig):
    kind: Annotated[str, BY_GROUP] = "long"
    most: int = 10


class Long(Verifier):
    """A verifier of a user's own: long steps are refuted."""

    Config = LongConfig
    settings: LongConfig

    def verify(self, step: StepInContext) -> Finding:
        if len(step.step) <= self.settings.most:
            return UNKNOWN
        return Finding(verdict=StepVerdict.REFUTED, evidence=f"{len(step.step)} characters", covers=Covers.WHOLE)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with python_without_ray():
        return label(
            ROWS,
            policy="oracle",
            progress=False,
            run_dir=tmp_path_factory.mktemp("checked") / "run",
            **{"run.report": False},
        )


def test_a_run_is_checked_by_verifiers_and_by_an_object(run: Run) -> None:
    steps = run.labels()["steps"].list.len().sum()
    found = run.check("arithmetic", "algebra", progress=False)
    assert list(found) == ["arithmetic", "algebra"]
    assert found["arithmetic"].counts.steps == steps
    assert f"checked {steps} steps" in repr(found["arithmetic"])
    assert run.verifiers == ["algebra", "arithmetic"]
    assert run.check("arithmetic", progress=False)["arithmetic"].counts == found["arithmetic"].counts
    (own,) = run.check(Long(LongConfig(most=20)), progress=False).values()
    assert own.name == "long"
    findings = run.checks("long")
    assert findings.columns == FINDINGS.names
    joined = run.labels().select("chain_id", "steps").explode("steps").with_columns(pl.col("steps").str.len_chars())
    assert findings.filter(pl.col("verdict") == "refuted").height == (joined["steps"] > 20).sum() == own.counts.refuted
    everything = run.checks()
    assert everything.height == 3 * steps
    assert set(everything["verifier"]) == {"algebra", "arithmetic", "long"}
    assert run.audit().sound
    with pytest.raises(RunConflict, match="has findings that were made otherwise"):
        run.check(Long(LongConfig(most=30)), progress=False)


def test_mistakes_are_named(run: Run) -> None:
    with pytest.raises(UsageError, match="has no checks by nobody"):
        run.checks("nobody")
    with pytest.raises(UsageError, match="there is no such verifier here"):
        run.check("nobody", progress=False)
    with pytest.raises(UsageError, match="give one object at most"):
        run.check(Long, Long, progress=False)
