"""Labels by consensus of a run with judges and scores whose opinions are known, made and proved by the commands."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.findings import Finding
from pipeline.analysis.audit.run import audit
from pipeline.analysis.relabel import regrade, relabel
from pipeline.config.changes import AuditConfig, RegradeConfig, RelabelConfig
from pipeline.config.choices import AfterError, ConsensusHow, LabelRule
from pipeline.config.consensus import ConsensusChange
from pipeline.core.errors import InputError, UsageError
from pipeline.core.progress import RelabelResult
from pipeline.judges.settings import ModelJudgeConfig
from tests.audit.forger import Change, Forger, first
from tests.audit.runs import copied
from tests.conftest import write_rows
from tests.consensus_labels import first_error, majority
from tests.runtime.in_process import label_in_process
from tests.runtime.judging.runs import frame, judged, rows, settings
from tests.settings import EstimatorChange, GraderChange, compose_label, policy_settings

pytestmark = pytest.mark.slow

Row = dict[str, Any]
CHAINS = 24


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two judges: one that is often right, and one of a single vote at chance."""
    run_dir = labelled(tmp_path_factory.mktemp("finished"))
    judged(settings(run_dir, name="good", votes=3, exact=0.8, early=0.1, late=0.05, false_alarm=0.1))
    judged(settings(run_dir, name="chance", votes=1, exact=0.2, early=0.3, late=0.3, false_alarm=0.5))
    return run_dir


def labelled(folder: Path) -> Path:
    """A run whose chains end right and wrong in turn."""
    given = rows(CHAINS)
    for row in given[1::2]:
        row["steps"][-1] = "The answer is 0."
    run_dir = folder / "run"
    label_in_process(compose_label([
        f"data.path={write_rows(folder / 'rows.jsonl', given)}", f"run_dir={run_dir}", "policy=oracle", "estimator=fixed",
        "sampling.rollouts=2", "run.unit_problems=4",
    ]))  # fmt: skip
    return run_dir


@pytest.fixture
def run_dir(finished: Path, tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_bytes((finished.parent / "rows.jsonl").read_bytes())
    return copied(finished, tmp_path)


def consensus(
    run_dir: Path, how: ConsensusHow | None = None, witnesses: Sequence[str] | None = ("judge:good",), **more: Any
) -> RelabelResult:
    change = ConsensusChange(
        how=how, witnesses=None if witnesses is None else list(witnesses), mc_rule=more.pop("mc_rule", None),
        recalibrate=more.pop("recalibrate", None),
    )  # fmt: skip
    return relabel(
        RelabelConfig(
            run_dir=str(run_dir), estimator=EstimatorChange(rule=LabelRule.consensus, **more), consensus=change
        )
    )


@pytest.fixture(scope="module")
def agreed(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That run with labels by consensus."""
    run_dir = copied(finished, tmp_path_factory.mktemp("agreed"))
    consensus(run_dir)
    return run_dir


def labels(run_dir: Path) -> list[Row]:
    return pl.read_parquet(run_dir / "labels" / "*.parquet").to_dicts()


def faults(run_dir: Path) -> list[Finding]:
    return list(audit(AuditConfig(run_dir=str(run_dir))).findings)


def votes_of(run_dir: Path, name: str = "good") -> dict[str, list[int]]:
    """Chain id -> the places that its votes name, 0 for none; votes that say nothing are left out."""
    found: dict[str, list[int]] = {}
    for row in frame(run_dir, name).to_dicts():
        if row["reading"] in ("error", "no_error"):
            found.setdefault(row["chain_id"], []).append(row["first_error"] or 0)
    return found


def test_exact_keeps_the_labels_of_chains_on_which_monte_carlo_and_the_judge_agree(run_dir: Path) -> None:
    before = {row["chain_id"]: row["label"] for row in labels(run_dir)}
    done = consensus(run_dir, ConsensusHow.exact)
    votes, kept = votes_of(run_dir), 0
    for row in labels(run_dir):
        steps, mc = len(row["steps"]), before[row["chain_id"]]
        assert row["mc_label"] == mc
        agree = first_error(mc) is not None and first_error(mc) == majority(votes[row["chain_id"]], steps)
        assert row["label"] == (mc if agree else [None] * steps)
        assert (row["left_out"] is None) == agree
        assert row["label_rule"] == "consensus:exact(judge:good)"
        assert row["p_error_free"] is None
        kept += agree
    assert 0 < kept < CHAINS
    assert done.notes[0].startswith(f"consensus {kept} of {CHAINS} chains have labels")
    assert faults(run_dir) == []


def test_opinions_are_the_shares_of_all_votes(run_dir: Path) -> None:
    consensus(run_dir, ConsensusHow.exact, ["judge:good", "judge:chance"])
    for row in labels(run_dir):
        assert [opinion["witness"] for opinion in row["opinions"]] == ["judge:good", "judge:chance"]
        for opinion, votes in zip(row["opinions"], (3, 1), strict=True):
            named = votes_of(run_dir, opinion["witness"].removeprefix("judge:"))[row["chain_id"]]
            shares = [named.count(place) / votes for place in range(len(row["steps"]) + 1)]
            assert [opinion["no_error"], *opinion["first_error"]] == pytest.approx(shares)


def test_side_labels_the_steps_on_which_all_agree(run_dir: Path) -> None:
    consensus(run_dir, ConsensusHow.side)
    votes = votes_of(run_dir)
    labelled_chains = 0
    for row in labels(run_dir):
        errors = [place for place in votes[row["chain_id"]] if place]
        judge_says_error = 2 * len(errors) > len(votes[row["chain_id"]])
        if row["left_out"] is None:
            labelled_chains += 1
            assert (0 in row["mc_label"]) == judge_says_error
            assert all(label in (None, mc) for label, mc in zip(row["label"], row["mc_label"], strict=True))
            assert any(label is not None for label in row["label"])
    assert 0 < labelled_chains < CHAINS
    assert faults(run_dir) == []


def test_posterior_labels_what_is_certain_and_gives_soft_targets_for_all_steps(run_dir: Path) -> None:
    done = consensus(run_dir, witnesses=None, certainty=0.8)
    for row in labels(run_dir):
        assert row["label_rule"] == "consensus:posterior@0.8(judge:chance,judge:good)"
        free = row["p_error_free"]
        assert len(free) == len(row["steps"])
        assert all(0 <= later <= earlier <= 1 for earlier, later in pairwise(free))
        for label, here in zip(row["label"], free, strict=True):
            assert (label == 1) == (here >= 0.8)
            assert label != 0 or here <= 0.2
    said = "\n".join(done.notes)
    assert f"learned   from {CHAINS} chains" in said
    assert "judge:good (an error, " in said
    assert "estimator.name=fixed takes the prefixes of a chain as independent: estimator.name=pooled knows more" in said
    pooled = consensus(run_dir, name="pooled")
    assert "as independent" not in "\n".join(pooled.notes)
    assert faults(run_dir) == []


def test_after_the_first_error_labels_follow_the_setting(run_dir: Path) -> None:
    judged(settings(run_dir, name="sure", votes=3, exact=1.0, early=0.0, late=0.0, false_alarm=0.0))
    consensus(run_dir, witnesses=["judge:sure"], certainty=0.51, after_error=AfterError.negative)
    bad = [row["label"] for row in labels(run_dir) if 0 in row["label"][:-1]]
    assert bad
    assert all(set(label[label.index(0) :]) == {0} for label in bad)


def test_the_same_again_writes_nothing_and_another_rule_leads_back(run_dir: Path) -> None:
    own = {path.name: path.read_bytes() for path in (run_dir / "labels").iterdir()}
    consensus(run_dir)
    assert consensus(run_dir, witnesses=None).number is None
    relabel(RelabelConfig(run_dir=str(run_dir), estimator=EstimatorChange(rule=LabelRule.lasting_drop)))
    assert {path.name: path.read_bytes() for path in (run_dir / "labels").iterdir()} == own
    with pytest.raises(UsageError, match=r"consensus\.how has no effect without estimator\.rule=consensus"):
        relabel(RelabelConfig(run_dir=str(run_dir), consensus=ConsensusChange(how=ConsensusHow.exact)))


def test_labels_are_made_again_when_a_witness_says_more(run_dir: Path, tmp_path: Path) -> None:
    path = scores_of(run_dir, tmp_path / "scores.parquet", 0.9)
    assert consensus(run_dir, ConsensusHow.exact, [f"scores:{path}"]).number == 0
    assert consensus(run_dir, ConsensusHow.exact, [f"scores:{path}"]).number is None
    scores_of(run_dir, path, 0.2)
    found = faults(run_dir)
    assert len(found) == 1
    assert f"its witness scores:{path} (step scores of prm for {CHAINS} chains) says other things now" in found[0].fault
    assert consensus(run_dir, ConsensusHow.exact, [f"scores:{path}"]).number == 1
    assert faults(run_dir) == []
    path.unlink()
    assert f"its witness scores:{path} cannot be read" in faults(run_dir)[0].fault


def scores_of(run_dir: Path, path: Path, share: float) -> Path:
    """Scores of a run's chains in which the last step has a low one."""
    rows = [
        {"chain_id": row["chain_id"], "step_scores": [*[share] * (len(row["steps"]) - 1), 0.1], "model": "prm"}
        for row in labels(run_dir)
    ]
    pl.DataFrame(rows).write_parquet(path)
    return path


def test_scores_claim_the_fall_of_their_running_minimum_or_the_first_low_step(run_dir: Path, tmp_path: Path) -> None:
    path = scores_of(run_dir, tmp_path / "scores.parquet", 0.75)
    consensus(run_dir, ConsensusHow.exact, [f"scores:{path}", f"scores:{path}@0.2"])
    for row in labels(run_dir):
        steps = len(row["steps"])
        soft, hard = row["opinions"]
        falls = [0.25, *[0.0] * (steps - 2), 0.65] if steps > 1 else [0.9]
        assert soft["first_error"] == pytest.approx(falls)
        assert soft["no_error"] == pytest.approx(0.1)
        assert hard["first_error"] == [0.0] * (steps - 1) + [1.0]
        assert hard["no_error"] == 0.0


def test_a_witness_of_half_of_the_chains_counts_for_these(run_dir: Path, tmp_path: Path) -> None:
    path = scores_of(run_dir, tmp_path / "scores.parquet", 0.9)
    pl.read_parquet(path).head(CHAINS // 2).write_parquet(path)
    consensus(run_dir, ConsensusHow.exact, [f"scores:{path}"])
    found = labels(run_dir)
    assert sum(row["opinions"] == [] for row in found) == CHAINS - CHAINS // 2
    assert {row["left_out"] for row in found if not row["opinions"]} == {"no_witness"}
    assert faults(run_dir) == []


def test_monte_carlo_alone_may_be_asked(run_dir: Path) -> None:
    consensus(run_dir, witnesses=[])
    assert {row["label_rule"] for row in labels(run_dir)} == {"consensus:posterior@0.95()"}
    with pytest.raises(UsageError, match=r"consensus\.how=exact needs a witness, and consensus\.witnesses is empty"):
        consensus(run_dir, ConsensusHow.exact, [])


def test_the_rule_of_monte_carlo_is_that_of_the_labels_before_unless_it_is_given(run_dir: Path) -> None:
    relabel(RelabelConfig(run_dir=str(run_dir), estimator=EstimatorChange(rule=LabelRule.threshold, threshold=0.6)))
    own = {row["chain_id"]: row["label"] for row in labels(run_dir)}
    consensus(run_dir, ConsensusHow.side)
    assert {row["chain_id"]: row["mc_label"] for row in labels(run_dir)} == own
    consensus(run_dir, ConsensusHow.exact, mc_rule=LabelRule.any)
    assert {row["chain_id"]: row["mc_label"] for row in labels(run_dir)} != own
    assert faults(run_dir) == []


def test_a_judge_of_the_policys_family_limits_the_certainty(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = replace(settings(run_dir), judge=ModelJudgeConfig(name="own"), policy=policy_settings("oracle"))
    judged(own)
    notes = "\n".join(consensus(run_dir, witnesses=["judge:good", "judge:own"], certainty=0.7).notes)
    why = "no certainty is above 0.85, of a first error 0.65, because judge:own and the policy are of one family"
    assert why in notes
    assert "0.65 of the first error; a label needs estimator.certainty=0.7" in notes
    assert all(0.15 - 1e-9 <= p <= 0.85 for row in labels(run_dir) for p in row["p_error_free"])
    assert {label for row in labels(run_dir) for label in row["label"]} == {1, None}
    assert faults(run_dir) == []
    assert main(["agree", f"run_dir={run_dir}", f"data.path={people(run_dir, tmp_path)}", "resamples=100"]) == 0
    assert main(["status", f"run_dir={run_dir}"]) == 0
    assert capsys.readouterr().out.count(why) == 2
    assert main(["report", f"run_dir={run_dir}"]) == 0
    assert f"N{why[1:]}" in (run_dir / "report.html").read_text()


def people(run_dir: Path, folder: Path, error: int = -1) -> Path:
    """A file in which people say of all chains that this step is the first error."""
    chains = [{"problem": row["problem"], "steps": row["steps"], "label": error} for row in labels(run_dir)]
    return write_rows(folder / "people.jsonl", chains)


def test_no_certainty_is_above_what_peoples_labels_support(run_dir: Path, tmp_path: Path) -> None:
    path = people(run_dir, tmp_path)
    notes = "\n".join(consensus(run_dir, certainty=0.6, recalibrate=str(path)).notes)
    assert "no certainty is above what people's labels in people.jsonl support" in notes
    claims = [p for row in labels(run_dir) for p in row["p_error_free"]]
    # People find no error: what says that there is one is wrong, and 24 right ones support 0.86.
    assert min(claims) == 0.5 < max(claims) <= 0.025 ** (1 / CHAINS)
    assert faults(run_dir) == []
    assert consensus(run_dir, certainty=0.6).number is None
    people(run_dir, tmp_path, error=0)
    assert "consensus.recalibrate" in faults(run_dir)[0].fault
    consensus(run_dir, certainty=0.6)
    assert max(p for row in labels(run_dir) for p in row["p_error_free"]) == 0.5
    consensus(run_dir, recalibrate="")
    assert max(p for row in labels(run_dir) for p in row["p_error_free"]) > 0.9


def test_peoples_labels_that_limit_nothing_are_refused(run_dir: Path, tmp_path: Path) -> None:
    other = write_rows(tmp_path / "other.jsonl", [{"problem": "9+9", "steps": ["18"], "label": -1}])
    with pytest.raises(InputError, match=r"consensus\.recalibrate=.*other\.jsonl: none of its chains is in the run"):
        consensus(run_dir, recalibrate=str(other))
    with pytest.raises(InputError, match=r"consensus\.recalibrate: there is no file"):
        consensus(run_dir, recalibrate=str(tmp_path / "none.jsonl"))
    with pytest.raises(UsageError, match=r"consensus\.recalibrate has no effect with consensus\.how=exact"):
        consensus(run_dir, ConsensusHow.exact, recalibrate=str(other))


def test_new_verdicts_make_a_new_consensus(run_dir: Path) -> None:
    consensus(run_dir, ConsensusHow.exact)
    regrade(RegradeConfig(run_dir=str(run_dir), grader=GraderChange(answer_pattern="(?P<answer>answer)")))
    found = labels(run_dir)
    assert {row["label_rule"] for row in found} == {"consensus:exact(judge:good)"}
    assert {label for row in found for label in row["mc_label"]} <= {0, None}
    assert faults(run_dir) == []


FORGERIES: list[tuple[str, Change, str]] = [
    ("labels", first(label=[1, 1, 1]), "in label"),
    ("labels", first(left_out="no_step"), "in left_out"),
    ("labels", first(opinions=[]), "in opinions"),
    (
        "reliabilities",
        first(learned=lambda row: json.dumps(_with_more_chains(json.loads(row["learned"])))),
        "what it learned of its witnesses does not follow from the log",
    ),
]


def _with_more_chains(learned: Row) -> Row:
    return learned | {"rows": [[*row[:-1], [*reversed(row[-1])]] for row in learned["rows"]]}


@pytest.mark.parametrize(("table", "change", "fault"), FORGERIES, ids=[fault for _, _, fault in FORGERIES])
def test_an_audit_finds_forged_consensus(table: str, change: Change, fault: str, agreed: Path, tmp_path: Path) -> None:
    run_dir = copied(agreed, tmp_path)
    Forger(run_dir).change("edition", table, change)
    assert any(fault in finding.fault for finding in faults(run_dir)), faults(run_dir)


def test_an_audit_finds_a_critique_that_has_been_changed(agreed: Path, tmp_path: Path) -> None:
    run_dir = copied(agreed, tmp_path)
    Forger(run_dir / "judges" / "good").change("unit", "critiques", first(reading="unparseable"))
    assert any("its witness judge:good" in finding.fault for finding in faults(run_dir))


@pytest.mark.parametrize(
    ("witness", "message"),
    [
        ("judge:nobody", "has no judge nobody: "),
        ("judge", "name the judge, as in judge:NAME"),
        ("juge:good", "there is no such witness here: did you mean judge?"),
        ("good", "a witness is named with its kind: consensus.witnesses=[judge:good]"),
        ("scores", "name the scores, as in scores:scores.parquet"),
        ("scores:nothing.parquet", "there is no such file"),
        ("scores:nothing.parquet@1.5", "the threshold after @ must be above 0 and at most 1"),
    ],
)
def test_a_witness_that_cannot_be_used_is_refused(witness: str, message: str, run_dir: Path) -> None:
    with pytest.raises((UsageError, InputError), match=re.escape(message)):
        consensus(run_dir, witnesses=[witness])
    assert not list((run_dir / "commits").glob("edition-*"))


def test_a_run_without_a_judge_says_what_to_start(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(run_dir / "judges")
    assert main(["relabel", f"run_dir={run_dir}", "estimator.rule=consensus"]) == 2
    assert f"start `judge run_dir={run_dir} judge.name=NAME policy.model=MODEL`" in capsys.readouterr().err


def test_label_cannot_have_a_consensus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["label", "data=sample", "policy=oracle", f"run_dir={tmp_path / 'run'}", "estimator.rule=consensus"]) == 2
    )
    assert "label with another rule, then `judge`, then `relabel estimator.rule=consensus`" in capsys.readouterr().err
