"""The second lap, without its runs."""

from pathlib import Path

import polars as pl

from tests.loop.plan import SHORT_LOOP, STEP, Files
from tests.loop.transfer import CONSENSUS, EXACT, MC, POSTERIOR, transfer_stages


def test_the_prms_of_the_second_lap_differ_in_their_labels_alone(tmp_path: Path) -> None:
    files = Files(folder=tmp_path)
    commands = {stage.name: stage.command for stage in transfer_stages(files, SHORT_LOOP.policy)}
    mc, consensus = (set(commands[f"train a PRM on {labels} labels"]) for labels in (MC, CONSENSUS))
    assert {word.partition("=")[0] for word in mc ^ consensus} == {"out", "soft"}


def test_a_prm_learns_from_monte_carlo_before_consensus_labels_take_their_place(tmp_path: Path) -> None:
    files = Files(folder=tmp_path)
    names = [stage.name for stage in transfer_stages(files, SHORT_LOOP.policy)]
    wanted = [
        f"train a PRM on {MC} labels",
        f"relabel by consensus.how={EXACT}",
        f"relabel by consensus.how={POSTERIOR}",
        f"train a PRM on {CONSENSUS} labels",
    ]
    assert [name for name in names if name in wanted] == wanted


def test_the_witness_is_the_prm_of_the_first_lap_on_the_chains_of_the_second(tmp_path: Path) -> None:
    files = Files(folder=tmp_path)
    stages = transfer_stages(files, SHORT_LOOP.policy)
    scoring = next(stage.command for stage in stages if stage.command[0] == "score")
    assert {f"model={files.model(STEP)}", f"run_dir={files.other_run}", f"out={files.other_scores}"} <= set(scoring)
    relabelled = [stage.command for stage in stages if stage.command[0] == "relabel"]
    assert len(relabelled) == 2
    assert all(f"consensus.witnesses=[scores:{files.other_scores}]" in command for command in relabelled)


def test_labels_by_exact_are_kept_once_and_made_anew_with_their_stage(tmp_path: Path) -> None:
    files = Files(folder=tmp_path)
    (files.other_run / "labels").mkdir(parents=True)
    by_how = {
        how: next(
            stage for stage in transfer_stages(files, SHORT_LOOP.policy) if f"consensus.how={how}" in stage.command
        )
        for how in (EXACT, POSTERIOR)
    }

    def labels(rule: str) -> None:
        pl.DataFrame({"label_rule": [rule]}).write_parquet(files.other_run / "labels" / "a.parquet")

    labels(EXACT)
    by_how[EXACT].before()
    by_how[POSTERIOR].before()
    labels(POSTERIOR)
    by_how[POSTERIOR].before()
    assert pl.read_parquet(files.exact_labels)["label_rule"].to_list() == [EXACT]
    by_how[EXACT].before()
    assert not files.exact_labels.exists()
