"""The second lap, without its runs."""

from pathlib import Path

import polars as pl

from tests.loop.plan import SHORT_LOOP, STEP, Files
from tests.loop.transfer import ALONE, CONSENSUS, EXACT, MC, transfer_stages

FILES = Files(folder=Path("loop"))
STAGES = {stage.name: stage for stage in transfer_stages(FILES, SHORT_LOOP.policy)}


def test_the_prms_of_the_second_lap_differ_in_their_labels_alone() -> None:
    mc, alone, consensus = (set(STAGES[f"train a PRM: {labels}"].command) for labels in (MC, ALONE, CONSENSUS))
    assert {word.partition("=")[0] for word in mc ^ consensus} == {"out", "soft"}
    assert {word.partition("=")[0] for word in alone ^ consensus} == {"out"}


def test_each_prm_learns_before_other_labels_take_the_place_of_its_own() -> None:
    wanted = [
        f"train a PRM: {MC}",
        f"relabel: {EXACT}",
        f"relabel: {ALONE}",
        f"train a PRM: {ALONE}",
        f"relabel: {CONSENSUS}",
        f"train a PRM: {CONSENSUS}",
    ]
    assert [name for name in STAGES if name in wanted] == wanted


def test_the_witness_is_the_prm_of_the_first_lap_on_the_chains_of_the_second() -> None:
    scoring = next(stage.command for stage in STAGES.values() if stage.command[0] == "score")
    assert {f"model={FILES.model(STEP)}", f"run_dir={FILES.other_run}", f"out={FILES.other_scores}"} <= set(scoring)
    relabelled = [name for name, stage in STAGES.items() if stage.command[0] == "relabel"]
    witnessed = [
        name for name in relabelled if f"consensus.witnesses=[scores:{FILES.other_scores}]" in STAGES[name].command
    ]
    assert (len(relabelled), witnessed) == (3, [f"relabel: {EXACT}", f"relabel: {CONSENSUS}"])


def test_labels_are_kept_once_and_made_again_with_their_stage(tmp_path: Path) -> None:
    files = Files(folder=tmp_path)
    (files.other_run / "labels").mkdir(parents=True)
    stages = {stage.name: stage for stage in transfer_stages(files, SHORT_LOOP.policy)}

    def relabel(name: str) -> None:
        stages[f"relabel: {name}"].before()
        pl.DataFrame({"label_rule": [name]}).write_parquet(files.other_run / "labels" / "a.parquet")

    def kept(name: str) -> list[str]:
        return list(pl.read_parquet(files.kept_labels(name))["label_rule"])

    for name in (EXACT, ALONE, CONSENSUS, CONSENSUS):
        relabel(name)
    assert (kept(EXACT), kept(ALONE)) == ([EXACT], [ALONE])
    relabel(ALONE)
    assert not files.kept_labels(ALONE).exists()
    assert kept(EXACT) == [EXACT]
