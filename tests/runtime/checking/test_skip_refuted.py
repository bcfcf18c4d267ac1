"""`label estimator.skip_refuted=true`: no rollouts are spent on prefixes that have a refuted step."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from pipeline.__main__ import compose_label, main
from pipeline.analysis.audit.run import audit
from pipeline.analysis.checks import check_summary
from pipeline.analysis.relabel import relabel
from pipeline.config.changes import AuditConfig, RelabelConfig
from pipeline.config.check import CheckRunConfig
from pipeline.config.choices import LabelRule
from pipeline.config.label import LabelConfig
from pipeline.core.errors import EngineDied, RunConflict
from pipeline.core.records import ChainShape, Totals
from pipeline.engines.base import Surroundings
from pipeline.estimators.tree import skipped_prefixes
from pipeline.runtime.objects import given, offered
from pipeline.runtime.state import identity
from pipeline.runtime.worker import engine_for
from pipeline.storage.location import storage_at
from tests.audit.forger import Forger, with_column
from tests.runtime.adaptive import labels, log, proved, settings, sums, table
from tests.runtime.checking.runs import QUICK, checked, obedient
from tests.runtime.checking.suspicious import Suspicious, is_bad
from tests.runtime.grown import DyingEngine, grow_here
from tests.runtime.grown import labelled as labelled_tree
from tests.runtime.in_process import label_in_process
from tests.settings import EstimatorChange

pytestmark = pytest.mark.slow

SKIP = ("checks=[arithmetic]", "estimator.skip_refuted=true")
PROBLEMS = 5
WRONG_STEP = 2
"""The step of every second chain of `sums` that has a false sum."""


def labelled(folder: Path, *overrides: str, **own: Any) -> LabelConfig:
    config = settings(folder, sums(PROBLEMS), *overrides)
    label_in_process(config, **own)
    return config


def sampled(folder: Path) -> set[str]:
    return set(table(folder, "rollouts")["prefix_id"])


def refuted(folder: Path) -> dict[str, int]:
    return dict(table(folder, "refutations").select("chain_id", "step").iter_rows())


@pytest.mark.parametrize("name", ["fixed", "pooled", "first_success", "bisect"])
def test_nothing_is_sampled_from_a_refuted_step_on(tmp_path: Path, name: str) -> None:
    labelled(tmp_path, f"estimator={name}", *SKIP)
    have, steps = sampled(tmp_path), refuted(tmp_path)
    rows = labels(tmp_path).to_dicts()
    assert {row["chain_id"]: row["outcome"] for row in rows} == {chain: not step for chain, step in steps.items()}
    for row in rows:
        if row["outcome"]:
            assert "refuted" not in row["origin"]
            continue
        assert steps[row["chain_id"]] == WRONG_STEP
        assert not have & {*row["prefix_ids"][WRONG_STEP - 1 :]}
        assert row["label"][WRONG_STEP - 1] == 0
        assert row["origin"][WRONG_STEP - 1 :] == ["refuted", "terminal"]
        assert row["n_rollouts"][WRONG_STEP - 1] == 0
    evidence = table(tmp_path, "refutations").filter(pl.col("step") > 0)
    assert {*evidence["verifier"]} == {"arithmetic"}
    assert all("not" in text for text in evidence["evidence"])
    proved(tmp_path)


def test_the_other_prefixes_get_the_same_rollouts_and_values(tmp_path: Path) -> None:
    labelled(tmp_path / "skip", "estimator=fixed", *SKIP)
    labelled(tmp_path / "all", "estimator=fixed")
    some, every = log(tmp_path / "skip"), log(tmp_path / "all")
    assert some.items() < every.items()
    assert len(every) - len(some) == 4 * PROBLEMS
    for one, other in zip(labels(tmp_path / "skip").to_dicts(), labels(tmp_path / "all").to_dicts(), strict=True):
        kept = 3 if one["outcome"] else WRONG_STEP - 1
        assert one["value"][:kept] == other["value"][:kept]
        assert one["label"][:kept] == other["label"][:kept]


def test_labels_after_a_refuted_step_follow_the_rule_for_them(tmp_path: Path) -> None:
    labelled(tmp_path, "estimator=fixed", "estimator.after_error=negative", *SKIP)
    for row in labels(tmp_path).iter_rows(named=True):
        if not row["outcome"]:
            assert row["label"][WRONG_STEP - 1 :] == [0, 0]


def test_new_labels_keep_what_was_refuted(tmp_path: Path) -> None:
    labelled(tmp_path / "one", "estimator=fixed", "estimator.rule=any", *SKIP)
    labelled(tmp_path / "two", "estimator=fixed", "estimator.rule=threshold", *SKIP)
    change = EstimatorChange(name="fixed", rule=LabelRule.threshold)
    relabel(RelabelConfig(run_dir=str(tmp_path / "one" / "run"), estimator=change))
    assert labels(tmp_path / "one").equals(labels(tmp_path / "two"))
    proved(tmp_path / "one")


def test_an_interrupted_run_is_continued_without_asking_again(tmp_path: Path) -> None:
    config = settings(
        tmp_path, sums(PROBLEMS), "estimator=fixed", "run.flush_seconds=0.05", "run.max_failures=1", *SKIP
    )
    with pytest.raises(EngineDied):
        label_in_process(config, engine=DyingAfter(config, 9))
    assert 0 < len(log_of_parts(tmp_path)) <= PROBLEMS * 2
    label_in_process(config)
    labelled(tmp_path / "whole", "estimator=fixed", *SKIP)
    assert log(tmp_path) == log(tmp_path / "whole")
    assert labels(tmp_path).equals(labels(tmp_path / "whole"))
    proved(tmp_path)


class DyingAfter(DyingEngine):
    """The engine of a run of `label` that dies after it has answered some requests."""

    def __init__(self, config: LabelConfig, answers: int) -> None:
        self._engine = engine_for(config, Surroundings())
        self._left = answers


def log_of_parts(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "run" / "flushed" / "refutations-*.parquet")


@contextmanager
def suspicious() -> Iterator[None]:
    made = Suspicious(Suspicious.Config(kind="suspicious"))
    with offered([given("verifier", made)]):
        yield


OF_TREE = ("checks=[suspicious]", "estimator.skip_refuted=true", "sampling.solutions=6", "estimator=fixed")


def test_chains_that_the_policy_writes_are_checked_too(tmp_path: Path) -> None:
    with suspicious():
        labelled_tree(tmp_path, *OF_TREE)
        proved(tmp_path)
        have, steps = sampled(tmp_path), refuted(tmp_path)
        rows = labels(tmp_path).to_dicts()
        first = {
            row["chain_id"]: next((at for at, step in enumerate(row["steps"], start=1) if is_bad(step)), 0)
            for row in rows
        }
        assert steps == first
        assert 0 < sum(map(bool, first.values())) < len(first)
        for row in rows:
            path = [row["root_prefix_id"], *row["prefix_ids"]][: len(row["steps"])]
            cut = first[row["chain_id"]] or len(path)
            assert have.issuperset(path[:cut])
            assert have.isdisjoint(path[cut:])


def test_a_run_that_skips_can_grow(tmp_path: Path) -> None:
    with suspicious():
        labelled_tree(tmp_path, *OF_TREE)
        grown = grow_here(tmp_path, "grow.budget=200")
        assert grown.summary.totals.promoted
        proved(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        with_column("step", lambda steps: [0 if step else 1 for step in steps]),
        with_column("step", lambda steps: [99 for _ in steps]),
        with_column("evidence", lambda texts: ["" for _ in texts]),
        lambda refutations: refutations.slice(1),
    ],
    ids=["another step", "a step that is not there", "no evidence", "a chain less"],
)
def test_an_audit_finds_other_refutations(tmp_path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    labelled(tmp_path, "estimator=fixed", *SKIP)
    Forger(tmp_path / "run").change("unit", "refutations", change)
    assert not audit(AuditConfig(run_dir=str(tmp_path / "run"))).sound


def test_a_late_verifier_refutes_nothing(tmp_path: Path) -> None:
    rows = [{"problem": "a problem", "answer": "1", "steps": ["sleep", "unclear", "wrong", "1"]}]
    with obedient():
        late = ("checks=[obedient]", "verifier=obedient", "verifier.deadline_seconds=0.5")
        label_in_process(settings(tmp_path, rows, "estimator=fixed", "estimator.skip_refuted=true", *late))
    assert [*refuted(tmp_path).values()] == [3]


def test_it_is_another_run(tmp_path: Path) -> None:
    plain = labelled(tmp_path, "estimator=fixed")
    other = settings(tmp_path, [], "estimator=fixed", *SKIP)
    with pytest.raises(RunConflict, match=r"estimator\.skip_refuted was false, now true"):
        label_in_process(other)
    mine, others = identity(plain, "d"), identity(other, "d")
    assert mine["estimator.skip_refuted"] is False
    assert not {key for key in mine if key.startswith("checks")}
    assert (others["checks"], others["verifier.kind"]) == (["arithmetic"], "arithmetic")
    facts = identity(
        settings(tmp_path, [], "estimator=fixed", "checks=[arithmetic,facts]", "estimator.skip_refuted=true"), "d"
    )
    assert facts["table_sha256"]


@pytest.mark.parametrize(
    ("given_settings", "said"),
    [
        (["estimator.skip_refuted=true"], "give them, such as checks=[arithmetic]"),
        (["checks=[arithmetik]", "estimator.skip_refuted=true"], "did you mean arithmetic?"),
        (["checks=[arithmetic,arithmetic]", "estimator.skip_refuted=true"], "named twice"),
        (["checks=[arithmetic]", "verifier=facts", "estimator.skip_refuted=true"], "none of checks=[arithmetic]"),
        (
            ["checks=[facts]", "verifier.table=missing.parquet", "estimator.skip_refuted=true"],
            "missing.parquet",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given_settings: list[str], said: str
) -> None:
    command = ["label", "data=sample", "policy=oracle", f"run_dir={tmp_path / 'run'}", *given_settings]
    assert main(command) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_settings_of_the_only_verifier_need_no_name() -> None:
    command = ["data=sample", "checks=[facts]", "verifier.table=sample", "estimator.skip_refuted=true"]
    assert compose_label(command).verifier.kind == "facts"


@pytest.mark.slow
def test_the_command_says_what_it_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = labelled(tmp_path, "estimator=fixed", *SKIP)
    assert main(["status", f"run_dir={config.run_dir}"]) == 0
    lines = capsys.readouterr().out
    saved = Totals(chains=10, refuted=5, skipped=5, prefixes=20, rollouts=60)
    assert (
        f"a verifier refutes a step in {saved.refuted} of {saved.chains} chains, so 5 prefixes got no rollouts" in lines
    )
    assert "which saves about 20 rollouts" in lines


SHAPES = st.lists(
    st.builds(
        lambda ids, outcome, refuted: ChainShape(
            prefix_ids=("root", *dict.fromkeys(ids)), outcome=outcome, refuted=min(refuted, len({*ids}))
        ),
        st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=6),
        st.sampled_from([None, True, False]),
        st.integers(0, 6),
    ),
    max_size=5,
)


@for_all(SHAPES)
def test_a_prefix_is_skipped_if_no_chain_needs_it(shapes: list[ChainShape]) -> None:
    found = skipped_prefixes(shapes)
    for prefix in "abcdefg":
        uses = [
            (shape.refuted, shape.prefix_ids.index(prefix))
            for shape in shapes
            if prefix in (shape.prefix_ids if shape.outcome is None else shape.prefix_ids[:-1])
        ]
        assert (prefix in found) == (bool(uses) and all(0 < refuted <= place for refuted, place in uses))
    assert "root" not in found


def test_a_label_that_a_refutation_made_is_no_evidence_on_it(tmp_path: Path) -> None:
    labelled(tmp_path, "estimator=fixed", *SKIP)
    checked(CheckRunConfig(run_dir=str(tmp_path / "run"), checks=["arithmetic"], processes=1, run=QUICK))
    summary = check_summary(storage_at(str(tmp_path / "run")), "arithmetic")
    assert summary.counts.refuted == PROBLEMS
    assert summary.against is not None
    assert summary.against.refuted.steps == 0
    assert summary.against.every.steps == 5 * PROBLEMS


def test_a_verifier_that_lacks_something_is_refused_before_sampling(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["label", "data=sample", "policy=oracle", f"run_dir={tmp_path / 'run'}"]
    assert main([*command, "checks=[proof_server]", "estimator.skip_refuted=true"]) == 2
    assert "checks=[proof_server]: it needs" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
