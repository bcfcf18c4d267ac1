"""`Run.judge`: a judge of the product and an object of a user's class, their critiques, and what needs the object."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from pipeline import Run, label, open_run
from pipeline.config.fields import BY_GROUP
from pipeline.config.judge import JudgeConfig
from pipeline.core.errors import RunConflict, UsageError
from pipeline.core.records import ChainText, Critique, Finish, Reading, ReadingKind
from pipeline.core.schemas import CRITIQUES
from pipeline.engines.base import Engine, Surroundings
from pipeline.judges.base import Judge, JudgingEngine
from tests.python.test_label import ROWS
from tests.runtime.without_ray import python_without_ray

pytestmark = [pytest.mark.slow, pytest.mark.ray]


@dataclass(kw_only=True, slots=True)
class LongestConfig(JudgeConfig):
    kind: Annotated[str, BY_GROUP] = "longest"


class LongestEngine:
    """Its votes name the longest step."""

    model, capacity = "longest", 4

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    async def start(self) -> None:
        return

    async def critiques(self, chain: ChainText) -> Sequence[Critique]:
        lengths = [len(step) for step in chain.steps]
        turns = (str(1 + lengths.index(max(lengths))),)
        reading = self._judge.read(turns, Finish.STOP, len(lengths))
        return [Critique(turns=turns, finish=Finish.STOP, reading=reading)] * self._judge.settings.votes

    async def close(self) -> None:
        return


class Longest(Judge):
    """A judge of a user's own, which writes with no model."""

    Config = LongestConfig
    writes = False

    def engine(self, text_engine: Engine | None, around: Surroundings) -> JudgingEngine:
        return LongestEngine(self)

    def read(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        return Reading(kind=ReadingKind.ERROR, first_error=int(turns[0]))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with python_without_ray():
        return label(
            ROWS,
            policy="oracle",
            progress=False,
            run_dir=tmp_path_factory.mktemp("judged") / "run",
            **{"run.report": False},
        )


def test_a_run_has_judges_and_their_critiques(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    chains = run.labels().height
    counts = run.judge("dry", judge={"kind": "oracle", "votes": 2, "oracle": {"seed": 3}}, progress=False)
    assert (counts.chains, counts.critiques, counts.votes) == (chains, 2 * chains, 2)
    assert run.judges == ["dry"]
    found = run.critiques("dry")
    assert found.columns == CRITIQUES.names
    assert found.height == 2 * chains
    assert set(found["chain_id"]) == set(run.labels()["chain_id"])
    assert run.judge("dry", judge={"kind": "oracle", "votes": 2, "oracle": {"seed": 3}}, progress=False) == counts
    with pytest.raises(RunConflict, match=r"has the critiques of judge.name=dry with other settings"):
        run.judge("dry", judge="oracle", progress=False)
    with pytest.raises(UsageError, match="has no judge dri: choose from dry"):
        run.critiques("dri")


def test_an_object_is_a_judge_and_what_reads_critiques_needs_it(run: Run) -> None:
    counts = run.judge("own", judge=Longest(LongestConfig(votes=3)), progress=False)
    assert counts.unanimous == counts.chains
    found = run.critiques("own").unique("chain_id").join(run.labels(), on="chain_id")
    for steps, named in zip(found["steps"], found["first_error"], strict=True):
        lengths = [len(step) for step in steps]
        assert lengths[named - 1] == max(lengths)
    report = run.audit()
    assert report.sound, report
    assert {Path(judge.run_dir).name for judge in report.judges} >= {"own"}
    without = open_run(run.run_dir).audit()
    assert not without.sound
    (fault,) = [each.fault for judge in without.judges for each in judge.findings]
    assert "names a judge that cannot be used here" in fault
    assert open_run(run.run_dir, judge=Longest).audit().sound
    notes = " ".join(open_run(run.run_dir).regrade().notes)
    assert "judge own: not read again: judge.kind=longest is the object" in notes
