"""Proofs in Coq and Lean in the processes of `check`: verdicts, limits, and nothing that outlives them."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pipeline.config.check import CheckRunConfig
from pipeline.config.label import DataConfig
from pipeline.core.errors import PluginError
from pipeline.core.records import ChainText
from pipeline.runtime.checking.children import StepChecker
from pipeline.verifiers.base import Fault, StepVerdict
from pipeline.verifiers.coq import toplevel
from pipeline.verifiers.settings import CoqConfig, ProofServerConfig
from tests.conftest import write_rows
from tests.deadlines import until
from tests.faults.runs import alive, of_group
from tests.runtime.checking.runs import QUICK, checked, checked_rows, frame
from tests.verifiers.lean_server import CLEAN, error, serving

pytestmark = pytest.mark.slow
needs_coq = pytest.mark.skipif(toplevel.program() is None, reason=f"needs Coq: {toplevel.REMEDY}")
PROBLEM = "Theorem t : 1 + 1 = 2."


def chain(problem: str, *steps: str) -> ChainText:
    return ChainText(chain_id="c", problem_id="p", problem=problem, steps=steps, prefix_ids=())


def of_coq(parent: int) -> set[int]:
    """The processes of Coq below a process."""
    toplevels = {each.pid for each in psutil.process_iter(["name"]) if each.info["name"].startswith("coqtop")}
    return toplevels.intersection(alive(of_group(parent)))


@needs_coq
def test_proofs_are_checked_within_a_run(tmp_path: Path) -> None:
    steps = ["Proof. simpl.", "reflexivity.", "Qed.", "Definition k : nat := missing_name."]
    found = checked_rows(tmp_path, [(PROBLEM, steps)], "coq")
    assert found["verdict"].to_list() == ["holds", "holds", "holds", "refuted"]
    assert found["covers"].to_list() == ["whole"] * 4
    assert found["fault"].null_count() == 4
    assert toplevel.version(toplevel.program() or "") in (tmp_path / "run/checks/coq/run.json").read_text()


@needs_coq
def test_coq_ends_with_the_process_that_asks_it() -> None:
    with closing(StepChecker(CoqConfig(deadline_seconds=3.0, sentence_seconds=100.0), 1)) as checker:
        late, after = checker.checked(chain(PROBLEM, "repeat (pose 1).", "```coq\nreflexivity.\n```"))
        assert late.fault is Fault.DEADLINE
        assert after.finding.verdict is StepVerdict.UNKNOWN
        (good,) = checker.checked(chain("", "Lemma a : True. exact I. Qed."))
        assert good.finding.verdict is StepVerdict.HOLDS
        process = checker._children[0].process
        assert process is not None
        assert len(of_coq(process.pid)) == 1
    until(lambda: not of_coq(process.pid))


def test_a_proof_server_that_stops_ends_the_command_and_what_was_checked_stays(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"problem": "theorem t : 1 = 1 := by", "answer": "1", "steps": ["rfl"], "id": "a"},
        {"problem": "theorem u : 1 = 2 := by", "answer": "1", "steps": ["```lean\nexact bad\n```"], "id": "b"},
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)

    def judge(code: str) -> dict[str, object]:
        is_proof = code.rstrip().endswith(("rfl", "exact GOAL _")) and "bad" not in code
        return CLEAN if is_proof else error("unknown identifier 'bad'")

    with serving(judge) as server:
        config = CheckRunConfig(
            run_dir=str(tmp_path / "run"),
            checks=["proof_server"],
            verifier=ProofServerConfig(url=server.url),
            processes=1,
            run=QUICK,
            data=DataConfig(path=str(path)),
        )
        # The first two requests ask for the version of Lean, the next one is about a step.
        checked(config)
        found = frame(tmp_path / "run", "proof_server")
        assert sorted(found["verdict"].to_list()) == ["holds", "refuted"]
        other = replace(config, run_dir=str(tmp_path / "other"))
        server.replies = [
            (
                200,
                b'{"results": [{"id": "0", "response": {"env": 0, "messages": [{"severity": "info", "data": "4"}]}}]}',
            )
        ] * 2
        server.replies += [(404, b"gone")] * 20
        with pytest.raises(
            PluginError, match=rf"proof server {server.url}: it answered with status 404: gone: start it"
        ):
            checked(other)
        server.replies = []
