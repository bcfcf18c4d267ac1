"""Scorers of published models give the scores of the published code, on random models of the same class and shape."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from pipeline.__main__ import main
from pipeline.config.score import ScorerConfig
from pipeline.core.tables import SCORES
from pipeline.scorers.settings import (
    FoverConfig,
    MathShepherdConfig,
    ModelEngine,
    QwenConfig,
    RlhflowConfig,
    SkyworkConfig,
)
from tests.conftest import write_rows
from tests.scorers import reference
from tests.scorers.loaded import chain, encoded, scored
from tests.scorers.published import (
    PROBLEM,
    STEPS,
    add_weights,
    llama_prm,
    mistral_prm,
    qwen_prm,
    qwen_tokenizer,
    skywork_prm,
    split_weights,
)
from tests.train.conftest import one_thread as one_thread

pytestmark = pytest.mark.slow

CHAINS = (
    (PROBLEM, STEPS),
    ("What is 6 - 18?", STEPS[1:]),
    (f"{PROBLEM} Write 18 - 6 in \\boxed{{}}.", (*STEPS, *STEPS, "So 12.")),
    ("2?", ("2",)),
)


@dataclass(frozen=True)
class Published:
    make: Callable[[Path], Path]
    config: type[Any]
    read: Callable[..., reference.Read]


PRMS = {
    "qwen": Published(qwen_prm, QwenConfig, reference.qwen),
    "math_shepherd": Published(mistral_prm, MathShepherdConfig, reference.math_shepherd),
    "rlhflow": Published(llama_prm, RlhflowConfig, reference.rlhflow),
    "fover": Published(llama_prm, FoverConfig, reference.fover),
    "skywork": Published(skywork_prm, SkyworkConfig, reference.skywork),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: prm.make(tmp_path_factory.mktemp(name)) for name, prm in PRMS.items()}


@pytest.mark.parametrize("name", PRMS)
def test_scores_are_those_of_the_published_code(name: str, folders: dict[str, Path]) -> None:
    prm, folder = PRMS[name], folders[name]
    found = scored(prm.config(model=str(folder)), [chain(0, problem, *steps) for problem, steps in CHAINS])
    for each, (problem, steps) in zip(found, CHAINS, strict=True):
        ids, scores = prm.read(folder, problem, steps)
        assert each.scores == pytest.approx(scores, abs=1e-5)
        assert (each.n_tokens, each.fault) == (len(ids), "")
        assert len(each.scores) == len(steps)
    spread = [score for each in found for score in each.scores if score is not None]
    assert max(spread) - min(spread) > 0.05


@pytest.mark.parametrize("name", PRMS)
def test_the_newest_step_alone_has_the_score_that_it_has_among_all(name: str, folders: dict[str, Path]) -> None:
    settings = PRMS[name].config(model=str(folders[name]), engine=ModelEngine.transformers)
    (whole,) = scored(settings, [chain(0, PROBLEM, *STEPS)])
    (newest,) = scored(settings, [chain(0, PROBLEM, *STEPS)], newest_only=True)
    assert newest.scores[:-1] == (None, None)
    assert newest.scores[-1] == pytest.approx(whole.scores[-1], abs=1e-5)
    assert newest.positions[-1] == whole.positions[-1]


@pytest.mark.parametrize("name", PRMS)
def test_a_chain_beyond_the_context_keeps_the_scores_of_its_first_steps(name: str, folders: dict[str, Path]) -> None:
    settings = PRMS[name].config(model=str(folders[name]))
    (whole,) = scored(settings, [chain(0, PROBLEM, *STEPS)])
    last_read = whole.positions[-1]
    assert last_read is not None
    (fits,) = scored(replace(settings, max_length=last_read + 1), [chain(0, PROBLEM, *STEPS)])
    assert fits.scores == pytest.approx(whole.scores, abs=1e-5)
    assert fits.fault == ""
    (cut,) = scored(replace(settings, max_length=last_read), [chain(0, PROBLEM, *STEPS)])
    assert cut.scores[:2] == pytest.approx(whole.scores[:2], abs=1e-5)
    assert cut.scores[2] is cut.positions[2] is None
    assert (cut.fault, cut.n_tokens) == ("too_long", (whole.positions[1] or 0) + 1)
    (none,) = scored(replace(settings, max_length=3), [chain(0, PROBLEM, *STEPS)])
    assert (none.scores, none.fault, none.n_tokens) == ((None,) * 3, "too_long", 0)


def test_the_first_turn_of_processbench_gives_what_its_one_token_generation_would_say(folders: dict[str, Path]) -> None:
    settings = RlhflowConfig(model=str(folders["rlhflow"]), between=r"\n\n")
    (found,) = scored(settings, [chain(0, PROBLEM, *STEPS)])
    assert found.scores == pytest.approx(reference.one_token(folders["rlhflow"], PROBLEM, STEPS), abs=1e-5)
    assert found.scores == pytest.approx(
        reference.rlhflow(folders["rlhflow"], PROBLEM, STEPS, between="\n\n")[1], abs=1e-5
    )


@pytest.mark.parametrize("name", ["qwen", "skywork"])
def test_a_model_in_several_files_has_the_same_scores(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    prm = PRMS[name]
    folder = prm.make(tmp_path / "split")
    split_weights(folder)
    one, several = (
        scored(prm.config(model=str(each)), [chain(0, PROBLEM, *STEPS)]) for each in (folders[name], folder)
    )
    assert one == several


def test_a_score_of_exactly_0_stays_with_its_step(tmp_path: Path) -> None:
    """`make_step_rewards` drops it: the class of good steps has the other class's share, which rounds to 1."""
    folder = qwen_prm(tmp_path / "prm")
    weights = load_file(folder / "model.safetensors")
    bias = torch.tensor([0.0, -2000.0])
    add_weights(folder, {**weights, "score.2.bias": bias})
    (found,) = scored(QwenConfig(model=str(folder)), [chain(0, PROBLEM, *STEPS)])
    assert found.scores == (0.0, 0.0, 0.0)
    with pytest.raises(RuntimeError, match="shape"):
        reference.qwen(folder, PROBLEM, STEPS)


def test_half_precision_gives_nearly_the_same_scores(folders: dict[str, Path]) -> None:
    for name, prm in PRMS.items():
        settings = prm.config(model=str(folders[name]))
        (full,) = scored(settings, [chain(0, PROBLEM, *STEPS)])
        (half,) = scored(replace(settings, dtype="bfloat16"), [chain(0, PROBLEM, *STEPS)])
        for one, other in zip(full.scores, half.scores, strict=True):
            assert one is not None
            assert other is not None
            assert math.isclose(one, other, abs_tol=0.2)
        assert full.scores != half.scores


@pytest.mark.parametrize("name", PRMS)
def test_score_reads_the_model_by_the_name_of_its_format(
    name: str, folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, object]] = [{"id": "a", "problem": PROBLEM, "answer": "12", "steps": list(STEPS)}]
    out = tmp_path / "scores.jsonl"
    data = f"data.path={write_rows(tmp_path / 'rows.jsonl', rows)}"
    words = [f"scorer={name}", f"scorer.model={folders[name]}", "scorer.engine=transformers", data, f"out={out}"]
    assert main(["score", *words]) == 0
    assert "scored 3 steps of 1 chain" in capsys.readouterr().out
    (row,) = map(json.loads, out.read_text().splitlines())
    assert list(row) == SCORES.schema.names
    ids, scores = PRMS[name].read(folders[name], PROBLEM, STEPS)
    assert row["step_scores"] == pytest.approx(scores, abs=1e-5)
    assert row["n_tokens"] == len(ids)
    assert row["score"] == row["step_scores"][-1]


def test_code_beside_a_published_model_is_not_run(tmp_path: Path) -> None:
    folder = qwen_prm(tmp_path / "prm")
    marker = tmp_path / "it-ran"
    for module in ("configuration_qwen2_rm.py", "modeling_qwen2_rm.py"):
        (folder / module).write_text(f"from pathlib import Path\nPath({str(marker)!r}).touch()\n")
    (found,) = scored(QwenConfig(model=str(folder)), [chain(0, PROBLEM, *STEPS)])
    assert None not in found.scores
    assert not marker.exists()


def test_the_settings_of_a_published_format_change_what_the_model_reads() -> None:
    tokenizer = qwen_tokenizer(tag="<sep>")
    settings: ScorerConfig = QwenConfig(model="prm", tag="<sep>", system=None)
    ids = encoded(settings, tokenizer, PROBLEM, STEPS).ids
    text = tokenizer.decode(ids)
    assert text.startswith("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nSue has")
    assert text.endswith("".join(f"{step}<sep>" for step in STEPS) + "<|im_end|>\n")
