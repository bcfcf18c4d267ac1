"""A model trained in seconds ranks held-out steps; `score` gives the model's own scores; both refuse unusable input."""

import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from safetensors.torch import load_file
from torch.utils.data import DataLoader
from transformers import AutoModelForTokenClassification, AutoTokenizer

from pipeline.__main__ import main
from pipeline.config.choices import Aggregation
from pipeline.config.label import DataConfig
from pipeline.config.score import ScoreConfig
from pipeline.core.errors import InputError, UsageError
from pipeline.core.tables import CALIBRATED_SCORES, LABELS, SCORES
from pipeline.data.problems import in_validation
from pipeline.runtime.scoring.files import score_to_file
from pipeline.scorers.calibration import Calibration, MapKind, encode
from pipeline.scorers.settings import OwnConfig
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import stored_run
from pipeline.train import trainer
from pipeline.train.data import StepCollator, StepDataset
from pipeline.train.result import NAME
from pipeline.train.settings import Loss, TrainConfig, TrainTarget
from pipeline.train.targets import IGNORED
from pipeline.train.trainer import Trained, _Validation, train, validation_text
from tests.conftest import write_rows
from tests.library import Library
from tests.scorers.test_calibration import line, made_from
from tests.tiny.policy import ASSET
from tests.train.runs import is_right, learnable_run

pytestmark = pytest.mark.slow

SHARE = 0.25
Printed = pytest.CaptureFixture[str]


def settings(run_dir: Path, out: Path, **changed: Any) -> TrainConfig:
    fixed: dict[str, Any] = {
        "run_dir": str(run_dir),
        "model": str(ASSET),
        "out": str(out),
        "separator": "\\n",
        "learning_rate": 3e-3,
        "epochs": 3,
        "validation": SHARE,
    }
    return TrainConfig(**{**fixed, **changed})


def trained(config: TrainConfig, shown: list[str] | None = None) -> Trained:
    lines = [] if shown is None else shown
    return train(config, weights=config.model, progress=lines.append)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learnable_run(tmp_path_factory.mktemp("learnable"))


@pytest.fixture(scope="module")
def small_run(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("learnable", tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def prm(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "prm"
    shown: list[str] = []
    result = trained(settings(run_dir, out), shown)
    assert not result.before
    assert result.metrics.auc is not None
    assert result.metrics.auc > 0.9
    assert [line.split("  ")[0] for line in shown[2:]] == ["epoch 1 of 3", "epoch 2 of 3", "epoch 3 of 3"]
    return out


@pytest.fixture(scope="module")
def scores(prm: Path, run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    out = tmp_path_factory.mktemp("scores") / "scores.parquet"
    done = score_to_file(ScoreConfig(scorer=OwnConfig(model=str(prm)), run_dir=str(run_dir), out=str(out)))
    assert (done.chains, done.unscored, done.left_out.rows) == (160, {}, 0)
    frame = pl.read_parquet(out)
    assert frame.columns == SCORES.schema.names
    return frame


def test_held_out_wrong_steps_score_below_right_ones(scores: pl.DataFrame) -> None:
    right: list[float] = []
    wrong: list[float] = []
    for row in scores.iter_rows(named=True):
        if in_validation(row["problem"], SHARE, 0):
            for step, value in zip(row["steps"], row["step_scores"], strict=True):
                (right if is_right(step) else wrong).append(value)
    first = [row["step_scores"][0] for row in scores.iter_rows(named=True) if is_right(row["steps"][0])]
    assert len(wrong) > 10
    assert sum(wrong) / len(wrong) < 0.5 < sum(first) / len(first)
    assert sum(low < sum(first) / len(first) for low in wrong) > 0.9 * len(wrong)


def test_the_checkpoint_is_a_plain_one_with_the_same_scores(prm: Path, scores: pl.DataFrame) -> None:
    model = AutoModelForTokenClassification.from_pretrained(prm)
    tokenizer = AutoTokenizer.from_pretrained(prm)
    assert model.config.id2label == {0: "bad", 1: "good"}
    assert model.config.stepvalue_separator == "\n"
    assert model.config.stepvalue_steps == "data.splitter=newline"
    for row in scores.head(3).iter_rows(named=True):
        pieces = tokenizer([text + "\n" for text in (row["problem"], *row["steps"])], add_special_tokens=False)
        lengths = [len(piece) for piece in pieces["input_ids"]]
        ids = torch.tensor([[token for piece in pieces["input_ids"] for token in piece]])
        with torch.no_grad():
            good = model(ids).logits.softmax(-1)[0, :, 1]
        ends = torch.tensor(lengths).cumsum(0)[1:] - 1
        assert row["step_scores"] == pytest.approx(good[ends].tolist(), abs=1e-5)
        assert row["score"] == row["score_last"] == row["step_scores"][-1]
        assert row["n_scored"] == len(row["steps"])


def test_a_finished_model_is_left_as_it_is_and_other_settings_are_refused(
    prm: Path, run_dir: Path, capsys: Printed
) -> None:
    before = {path.name: path.read_bytes() for path in prm.iterdir()}
    asked = [f"run_dir={run_dir}", f"model={ASSET}", f"out={prm}", f"validation={SHARE}", "learning_rate=3e-3"]
    assert main(["train", *asked, r"separator='\n'"]) == 0
    assert capsys.readouterr().out.startswith("Nothing to do: ")
    assert main(["train", *asked, r"separator='\n'", "epochs=5"]) == 2
    assert "was trained with epochs=3, not 5" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in prm.iterdir()} == before
    assert {"config.json", "model.safetensors", "tokenizer.json", NAME} <= before.keys()
    assert not [name for name in before if name.endswith((".bin", ".pt", ".pth"))]


@pytest.mark.parametrize("patience", [2, pytest.param(None, marks=pytest.mark.nightly)])
def test_what_is_broken_off_goes_on_to_the_same_weights(small_run: Path, tmp_path: Path, patience: int | None) -> None:
    class PowerCut(Exception): ...

    def broken(line: str) -> None:
        if line.startswith("epoch 2"):
            raise PowerCut

    straight = settings(small_run, tmp_path / "straight", loss=Loss.soft, patience=patience)
    cut = settings(small_run, tmp_path / "cut", loss=Loss.soft, patience=patience)
    trained(straight)
    with pytest.raises(PowerCut):
        train(cut, weights=str(ASSET), progress=broken)
    torn = tmp_path / "cut" / "checkpoints" / "checkpoint-99"
    torn.mkdir()
    shown: list[str] = []
    trained(cut, shown)
    kept = [] if patience is None else ["kept        "]
    assert [line[:12] for line in shown[2:]] == ["resumes from", "epoch 2 of 3", "epoch 3 of 3", *kept]
    assert "since the checkpoint" not in shown[3]
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("straight", "cut")]
    assert all(torch.allclose(weights[0][name], weights[1][name], atol=1e-6) for name in weights[0])
    assert not (tmp_path / "cut" / "checkpoints").exists()


def test_training_stops_when_the_held_out_loss_rises_and_keeps_the_best_epoch(small_run: Path, tmp_path: Path) -> None:
    shown: list[str] = []
    config = settings(
        small_run, tmp_path / "prm", loss=Loss.soft, epochs=9, patience=1, learning_rate=0.3, validation=0.4
    )
    found = trained(config, shown)
    losses = [float(line.partition(": loss ")[2].split(",")[0]) for line in shown if line.startswith("epoch")]
    best = losses.index(min(losses)) + 1
    assert len(losses) == best + 1 < 9
    assert shown[-1] == f"kept        the weights of epoch {best}"
    assert found.metrics.loss == pytest.approx(min(losses), abs=1e-4)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "prm")
    held_out = StepDataset.of_run(config, tokenizer, max_length=192, held_out=True)
    written = AutoModelForTokenClassification.from_pretrained(tmp_path / "prm")
    loss = _Validation(held_out, tokenizer, Loss.soft).metrics(written).loss
    assert loss == pytest.approx(min(losses), abs=1e-3)
    assert losses[-1] > min(losses) + 1e-2


def test_patience_without_held_out_problems_is_a_warning(small_run: Path, tmp_path: Path) -> None:
    shown: list[str] = []
    trained(settings(small_run, tmp_path / "prm", epochs=1, layers=0, patience=1, validation=1e-9), shown)
    assert "warning     patience=1 has no effect: no held-out problem has a step to train on; raise validation" in shown


@pytest.mark.parametrize(
    ("kept", "said"), [(True, "good steps and no bad one"), (False, "bad steps and no good one"), (None, "")]
)
def test_held_out_problems_of_one_class_are_a_warning(
    kept: bool | None, said: str, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = StepDataset.of_run

    def of_one_class(*arguments: Any, held_out: bool, **named: Any) -> StepDataset:
        found = read(*arguments, held_out=held_out, **named)
        if held_out and kept is not None:
            found.items[:] = [
                replace(item, targets=tuple(each for each in item.targets if each.label in (None, int(kept))))
                for item in found.items
            ]
        return found

    monkeypatch.setattr(StepDataset, "of_run", of_one_class)
    shown: list[str] = []

    def fitted(*_: Any) -> Any:
        raise InputError("enough is shown")

    monkeypatch.setattr(trainer, "fit", fitted)
    with pytest.raises(InputError, match="enough is shown"):
        trained(settings(small_run, tmp_path / "prm", epochs=1, layers=0, validation=0.4), shown)
    warnings = [line for line in shown if line.startswith("warning     the held-out problems")]
    assert len(warnings) == bool(said)
    assert all(said in line and "raise validation" in line for line in warnings)


def test_the_first_loss_behind_a_checkpoint_within_an_epoch_says_that_it_is_of_the_rest(
    small_run: Path, tmp_path: Path
) -> None:
    config = settings(small_run, tmp_path / "prm", epochs=2, batch=8, validation=0, layers=0, checkpoint_steps=2)

    def broken(line: str) -> None:
        if line.startswith("epoch 1"):
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(config, weights=str(ASSET), progress=broken)
    shown: list[str] = []
    trained(config, shown)
    assert shown[2].endswith("checkpoint-2")
    assert shown[3].startswith("epoch 1 of 2  training loss since the checkpoint ")
    assert shown[4].startswith("epoch 2 of 2  training loss 0.")


def test_an_outcome_model_with_the_uppermost_layer_alone(small_run: Path, tmp_path: Path) -> None:
    config = settings(
        small_run,
        tmp_path / "orm",
        target=TrainTarget.outcome,
        layers=1,
        epochs=1,
        gradient_accumulation_steps=2,
        checkpoint_steps=1,
        gradient_checkpointing=True,
        validation=0,
    )
    shown: list[str] = []
    result = trained(config, shown)
    assert (result.metrics.steps, result.metrics.loss) == (0, None)
    assert shown[-1].startswith("epoch 1 of 1")
    assert "no held-out problems" in shown[-1]
    before, after = load_file(ASSET / "model.safetensors"), load_file(tmp_path / "orm" / "model.safetensors")
    moved = {name for name in before if not torch.equal(before[name].float(), after[name].float())}
    assert moved == {name for name in before if name.startswith(("model.layers.3.", "model.norm."))}


def test_only_steps_that_a_figure_is_about_are_counted(small_run: Path, tmp_path: Path) -> None:
    result = trained(
        settings(small_run, tmp_path / "orm", target=TrainTarget.outcome, layers=0, epochs=1, validation=0.5)
    )
    chains = [
        row for frame in stored_run(LocalStorage(small_run)).frames(LABELS) for row in frame.iter_rows(named=True)
    ]
    outcomes = [row["outcome"] for row in chains if in_validation(row["problem"], 0.5, 0)]
    found = result.metrics
    assert (found.steps, found.good, found.bad) == (len(outcomes), outcomes.count(True), outcomes.count(False))
    assert f"{len(outcomes)} held-out steps ({found.good} good, {found.bad} bad): loss" in validation_text(found)


def test_a_loop_of_ones_own_gets_batches_with_targets_at_step_ends(small_run: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(ASSET)
    config = TrainConfig(run_dir=str(small_run), separator="\n")
    dataset = StepDataset.of_run(config, tokenizer, max_length=40)
    batch = next(iter(DataLoader(dataset, batch_size=len(dataset), collate_fn=StepCollator(0))))
    assert len(dataset) == dataset.chains == 24
    ends = batch["value_mask"]
    assert int(ends.sum()) == dataset.steps - dataset.cut < dataset.steps
    assert (batch["input_ids"][ends] == tokenizer.convert_tokens_to_ids("\n")).all()
    assert ((batch["labels"] != IGNORED) <= ends).all()
    assert (batch["attention_mask"][ends] == 1).all()
    assert {tuple(tensor.shape) for tensor in batch.values()} == {tuple(ends.shape)}
    assert batch["input_ids"].shape[1] <= 40


def test_rows_need_no_answer_and_what_does_not_fit_has_no_score(prm: Path, tmp_path: Path, capsys: Printed) -> None:
    rows: list[dict[str, object]] = [
        {"id": "a", "problem": "12*3", "answer": "36", "steps": ["12*3=36", "#36"]},
        {"id": "b", "problem": "12*3", "answer": "36", "steps": ["12*3=-36", "#-36"]},
        {"id": "c", "problem": "12*3", "steps": ["12*3=36", "#36"]},
        {"id": "d", "problem": "12*3", "answer": "36"},
        {"id": "e", "problem": "1+1", "steps": ["1+1=2", "1" * 300, "#2"]},
        {"id": "f", "problem": "1" * 300, "steps": ["1"]},
    ]
    out = tmp_path / "scores.jsonl"
    data = f"data.path={write_rows(tmp_path / 'rows.jsonl', rows)}"
    pattern = "grader.answer_pattern='#(-?[0-9]+)'"
    assert main(["score", f"model={prm}", data, f"out={out}", "aggregation=min", pattern]) == 0
    shown = capsys.readouterr().out
    assert "scored 7 steps of 5 chains" in shown
    assert "no score, because not all steps fit into the model: 2 chains" in shown
    assert "left out: 1 row, the first: " in shown
    assert "rows.jsonl:4: The row has no chain" in shown
    found = {row["source_id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert list(found["a"]) == SCORES.schema.names
    assert [found[name]["outcome"] for name in "abce"] == [True, False, None, None]
    assert [found[name]["gold_answer"] for name in "ac"] == ["36", None]
    assert found["a"]["problem_id"] == found["b"]["problem_id"] == found["c"]["problem_id"]
    assert found["a"]["chain_id"] == found["c"]["chain_id"] != found["b"]["chain_id"]
    assert found["c"]["final_answer"] == "36"
    assert found["a"]["score"] == found["a"]["score_min"] == min(found["a"]["step_scores"])
    assert found["a"]["step_scores"] == found["c"]["step_scores"]
    assert [found[name]["n_scored"] for name in "ef"] == [1, 0]
    assert found["e"]["step_scores"][1:] == [None, None]
    assert found["e"]["score"] is found["f"]["score"] is None

    people = [{**rows[at], "label": label} for at, label in ((0, -1), (1, 0), (4, 0), (5, -1))]
    judged = tmp_path / "judged.json"
    data = f"data.path={write_rows(tmp_path / 'people.jsonl', people)}"
    assert main(["agree", f"scores={out}", "data=rows", data, f"out={judged}", "resamples=100"]) == 0
    counts = json.loads(judged.read_text())["counts"]
    assert (counts["rows"], counts["judged"], counts["cut"]) == (4, 2, 2)
    assert (counts["scored"], counts["repeated_scores"], counts["not_by_people"]) == (4, 1, 0)
    assert json.loads(judged.read_text())["model"] == str(prm)


def test_neither_the_size_of_batches_nor_a_separator_that_is_named_shows(
    prm: Path, small_run: Path, tmp_path: Path
) -> None:
    def frame(aggregation: Aggregation, **changed: Any) -> pl.DataFrame:
        out = tmp_path / f"{aggregation.value}.parquet"
        scorer = OwnConfig(model=str(prm), **changed)
        score_to_file(ScoreConfig(scorer=scorer, run_dir=str(small_run), out=str(out), aggregation=aggregation))
        return pl.read_parquet(out)

    together = frame(Aggregation.last)
    apart = frame(Aggregation.product, batch_tokens=64, separator="\\n")
    assert apart["score"].to_list() == apart["score_product"].to_list()
    assert apart["score_last"].to_list() == pytest.approx(together["score_last"].to_list(), abs=1e-5)


def test_runs_that_cannot_be_trained_on_are_refused(small_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "prm"
    with pytest.raises(UsageError, match="does not contain a run"):
        trained(settings(tmp_path, out))
    with pytest.raises(InputError, match=r"no step of the 24 chains .* do not fit into max_length"):
        trained(settings(small_run, out, max_length=1, validation=0))
    with pytest.raises(UsageError, match=r"layers=9: .* has 4 layers"):
        trained(settings(small_run, out, layers=9))
    with pytest.raises(UsageError, match=r"the tokenizer of .*nowhere cannot be loaded: .*; give model"):
        trained(settings(small_run, out, model=str(tmp_path / "nowhere")))
    assert not out.exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").touch()
    with pytest.raises(UsageError, match="holds something else"):
        trained(settings(small_run, tmp_path / "other"))


def test_an_unfinished_run_is_trained_on_only_if_that_is_said(small_run: Path, tmp_path: Path) -> None:
    unfinished = Path(shutil.copytree(small_run, tmp_path / "run"))
    for record in sorted((unfinished / "commits").glob("unit-*.json"))[:1]:
        record.unlink()
    with pytest.raises(UsageError, match="1 of 1 unit is unfinished"):
        trained(settings(unfinished, tmp_path / "prm"))
    with pytest.raises(InputError, match="no chains to train on"):
        trained(settings(unfinished, tmp_path / "prm", partial=True))


@pytest.mark.parametrize("finished", [False, True])
def test_labels_that_changed_are_refused(small_run: Path, tmp_path: Path, finished: bool) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    config = settings(run, tmp_path / "prm", epochs=1)

    def shown(line: str) -> None:
        if line.startswith("epoch") and not finished:
            raise KeyboardInterrupt

    with nullcontext() if finished else pytest.raises(KeyboardInterrupt):
        train(config, weights=config.model, progress=shown)
    assert main(["relabel", f"run_dir={run}", "estimator.rule=threshold", "estimator.threshold=0.9"]) == 0
    with pytest.raises(
        InputError, match=r"labels of .*run have changed since the training in .*prm began: .* another folder"
    ):
        trained(config)


def test_scores_are_refused_of_what_is_no_such_model(prm: Path, small_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.parquet"

    def scored(model: Path = prm, **changed: Any) -> None:
        scorer = OwnConfig(model=str(model))
        score_to_file(ScoreConfig(**{"scorer": scorer, "run_dir": str(small_run), "out": str(out), **changed}))

    with pytest.raises(UsageError, match=r"is LlamaForCausalLM, but scorer=own is for a model with two classes"):
        scored(ASSET)
    with pytest.raises(InputError, match=r"holds no chain to score; the first of 1 rows: .*:1: "):
        scored(run_dir=None, data=DataConfig(path=str(write_rows(tmp_path / "rows.jsonl", [{"problem": "1+1"}]))))
    for changed in (
        {"run_dir": None, "data": DataConfig(path=str(tmp_path)), "out": str(tmp_path / "rows.jsonl")},
        {"out": str(small_run / "scores.parquet")},
    ):
        with pytest.raises(UsageError, match="which is read: choose another out"):
            scored(**changed)
    config = json.loads((prm / "config.json").read_text())
    foreign = Path(shutil.copytree(prm, tmp_path / "foreign"))
    (foreign / "config.json").write_text(json.dumps({**config, "stepvalue_separator": None}))
    with pytest.raises(UsageError, match=r"has no stepvalue_separator: give scorer\.separator="):
        scored(foreign)
    assert not out.exists()


def test_a_calibration_makes_v_of_scores_and_keeps_the_models_own(
    prm: Path, small_run: Path, tmp_path: Path, capsys: Printed
) -> None:
    known = made_from(model=str(prm), policy="the policy in use")
    squares = line(1, None, *((number / 10, (number / 10) ** 2) for number in range(11)))
    made = Calibration(kind=MapKind.isotonic, confidence=0.95, made_from=known, maps=(squares,))
    calibration = tmp_path / "cal.json"
    calibration.write_text(encode(made, {}))

    def scored(name: str, *more: str) -> pl.DataFrame:
        words = ["score", f"model={prm}", f"run_dir={small_run}", f"out={tmp_path / name}", *more]
        assert main(words) == 0
        return (pl.read_ndjson if name.endswith("jsonl") else pl.read_parquet)(tmp_path / name)

    plain = scored("plain.parquet")
    assert plain.columns == SCORES.schema.names
    assert "calibrated" not in capsys.readouterr().out
    for name in ("with.parquet", "with.jsonl"):
        found = scored(name, f"calibration={calibration}", "aggregation=min")
        assert found.columns == CALIBRATED_SCORES.schema.names
        assert "V, P(correct final answer), under the policy the policy in use" in " ".join(
            capsys.readouterr().out.split()
        )
        for before, row in zip(plain.iter_rows(named=True), found.iter_rows(named=True), strict=True):
            assert row["raw_step_scores"] == before["step_scores"]
            assert row["step_scores"] == made.apply(before["step_scores"])
            assert row["step_scores"] != before["step_scores"]
            assert row["score"] == row["score_min"] == min(row["step_scores"])
            assert row["score_last"] == row["step_scores"][-1]

    out = tmp_path / "refused.parquet"
    calibration.write_text(encode(replace(made, made_from=replace(known, model="another")), {}))
    words = ["score", f"model={prm}", f"run_dir={small_run}", f"out={out}", f"calibration={calibration}"]
    assert main(words) == 2
    assert "made for scores of another" in capsys.readouterr().err
    assert not out.exists()
    assert main([*words, "other_model=true"]) == 0
    assert main([*words[:-2], f"out={tmp_path / 'cal.jsonl'}", "calibration=missing.json"]) == 2
    assert "calibration=missing.json cannot be read" in capsys.readouterr().err
    (tmp_path / "cal.jsonl").write_text(calibration.read_text())
    assert main([*words[:3], f"out={tmp_path / 'cal.jsonl'}", f"calibration={tmp_path / 'cal.jsonl'}"]) == 2
    assert "would overwrite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "run_dir=x", "model=x", "out=y", "validation=1"], "validation=1.0 is out of range"),
        (["train", "run_dir=x", "model=x", "out=y", "patience=1", "validation=0"], "patience needs held-out problems"),
        (["train", "run_dir=x", "model=x", "out=y", "batch=0"], "batch=0 is out of range: it must be at least 1"),
        (["train", "run_dir=x", "model=x", "out=y", "loss=mse"], "hard, soft"),
        (["score", "model=x", "out=y"], "give either run_dir=FOLDER"),
        (["score", "model=x", "out=y", "run_dir=z", "data=sample"], "give either run_dir=FOLDER"),
        (["score", "model=x", "out=y", "run_dir=z", "agregation=min"], "did you mean aggregation?"),
    ],
)
def test_wrong_settings_are_reported_in_a_line(arguments: list[str], said: str, capsys: Printed) -> None:
    assert main(arguments) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1
