"""What a scorer that loads a model asks of its workers' devices, and which engine computes it."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import ClusterError, PlaceError, UsageError
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.engines.vllm.arguments import GPU_MEMORY_SHARE
from pipeline.scorers import chosen, model
from pipeline.scorers.base import StepScores, unscored
from pipeline.scorers.encoding import EncodedChain
from pipeline.scorers.model import ModelScorer, Reading
from pipeline.scorers.own import Own
from pipeline.scorers.prepared import Prepared
from pipeline.scorers.readouts import Classes, Readout, TokenPair, Value
from pipeline.scorers.settings import ModelEngine, OwnConfig
from pipeline.scorers.vllm import VllmScoring
from tests.models import LLAMA_8B

GPU = 80e9


def scorer(folder: Path, **settings: Any) -> ModelScorer:
    """A model of eight billion parameters in bfloat16, without its weights."""
    stated = {**LLAMA_8B, "dtype": "bfloat16", "architectures": ["LlamaForTokenClassification"]}
    (folder / "config.json").write_text(json.dumps(stated))
    return Own(OwnConfig(model=str(folder), **settings))


def test_a_model_takes_as_few_gpus_as_hold_it(tmp_path: Path) -> None:
    assert scorer(tmp_path).choose_tensor_parallel(8, GPU) == 1
    assert scorer(tmp_path).choose_tensor_parallel(8, 24e9) == 2
    assert scorer(tmp_path, max_length=4096, max_num_seqs=8).choose_tensor_parallel(8, 24e9) == 1
    assert scorer(tmp_path, engine=ModelEngine.transformers).choose_tensor_parallel(8, 12e9) == 1
    with pytest.raises(ClusterError, match=r"16 GB of weights .* 2 GPUs of 8 GB: lower scorer\.max_length"):
        scorer(tmp_path).choose_tensor_parallel(2, 8e9)


def test_settings_pass_through(tmp_path: Path) -> None:
    given = scorer(tmp_path, tensor_parallel=4, memory_share=0.7)
    assert given.given_tensor_parallel() == 4
    assert given.needs(1).memory_share == 0.7
    assert scorer(tmp_path).needs(0.5).memory_share == GPU_MEMORY_SHARE / 2
    assert scorer(tmp_path).needs(1).folder == str(tmp_path.resolve())
    given.check_gpus(1)
    with pytest.raises(UsageError, match=r"scorer\.memory_share=0\.7 .* cluster\.gpus_per_worker=0\.5"):
        given.check_gpus(0.5)


@pytest.mark.parametrize(
    ("engine", "found"), [(ModelEngine.vllm, True), (ModelEngine.auto, None), (ModelEngine.transformers, None)]
)
def test_only_vllms_gpu_build_needs_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: ModelEngine, found: bool | None
) -> None:
    monkeypatch.setattr(model, "on_gpu_build", lambda: True)
    assert scorer(tmp_path, engine=engine).uses_gpus() is found


class Recorded:
    """An engine that only says who it is."""

    capacity = 7

    def __init__(self, name: str) -> None:
        self.model = name
        self.closed = False

    async def start(self) -> None:
        if self.model == "vllm that fails":
            raise PlaceError("the scorer m cannot be loaded: no memory is left")

    async def score(self, asked: Sequence[ChainText]) -> Sequence[StepScores]:
        return [unscored(len(chain.steps), self.model) for chain in asked]

    async def close(self) -> None:
        self.closed = True


CHAIN = ChainText(chain_id="c", problem_id="p", problem="1", steps=("2",), prefix_ids=("x",))


def by(
    monkeypatch: pytest.MonkeyPatch, asked: ModelScorer, readout: Readout, *, vllm: str = "vllm", **facts: Any
) -> str:
    """Which engine answers."""

    def encode(problem: str, steps: Sequence[str], most: int) -> EncodedChain:
        return EncodedChain(ids=(1,), ends=(0,), left_out=0)

    class Config:
        architectures = ("LlamaForTokenClassification",)

    prepared = Prepared(
        config=Config(), tokenizer=None, reading=Reading(encode=encode, readout=readout), context=9, max_length=9
    )
    made = {"vllm": Recorded(vllm), "transformers": Recorded("transformers")}
    known = {"installed": True, "gpu": True, "serves": True, "newest_only": False, **facts}
    monkeypatch.setattr(chosen, "find_spec", lambda name: object() if known["installed"] else None)
    monkeypatch.setattr(chosen, "on_gpu", lambda: known["gpu"])
    monkeypatch.setattr(chosen, "serves", lambda names, cpus: known["serves"])
    monkeypatch.setattr(chosen, "prepare", lambda scorer: prepared)
    monkeypatch.setattr(chosen, "VllmScoring", lambda *_, **__: made["vllm"])
    monkeypatch.setattr(chosen, "TransformersEngine", lambda *_, **__: made["transformers"])

    async def work() -> str:
        engine = asked.engine(Surroundings(), newest_only=bool(known["newest_only"]))
        try:
            await engine.start()
            assert engine.capacity == Recorded.capacity
            (found,) = await engine.score([CHAIN])
        finally:
            await engine.close()
        return found.fault

    return asyncio.run(work())


def test_auto_takes_vllm_where_it_serves_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = scorer(tmp_path)
    pair = TokenPair(good=1, bad=2)
    assert by(monkeypatch, auto, Classes()) == "vllm"
    assert by(monkeypatch, auto, pair) == "vllm"
    assert by(monkeypatch, auto, Value()) == "transformers"
    assert by(monkeypatch, auto, Classes(), serves=False) == "transformers"
    assert by(monkeypatch, auto, Classes(), installed=False) == "transformers"
    assert by(monkeypatch, auto, Classes(), gpu=False) == "transformers"
    assert by(monkeypatch, auto, Classes(), gpu=False, newest_only=True) == "vllm"
    assert by(monkeypatch, scorer(tmp_path, engine=ModelEngine.transformers), Classes()) == "transformers"
    assert by(monkeypatch, scorer(tmp_path, engine=ModelEngine.vllm), Value(), serves=False) == "vllm"


def test_a_start_that_fails_names_the_other_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        PlaceError, match=r"no memory is left; or let transformers compute it: scorer\.engine=transformers"
    ):
        by(monkeypatch, scorer(tmp_path), Classes(), vllm="vllm that fails")


def test_a_head_with_one_number_is_no_head_for_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = scorer(tmp_path, engine=ModelEngine.vllm)

    def prepared(_: ModelScorer) -> Prepared:
        reading = Reading(encode=lambda *_: EncodedChain(ids=(), ends=(), left_out=0), readout=Value())
        return Prepared(config=None, tokenizer=None, reading=reading, context=9, max_length=9)

    monkeypatch.setattr("pipeline.scorers.vllm.prepare", prepared)
    engine = asked.engine(Surroundings())
    assert isinstance(engine, VllmScoring)
    with pytest.raises(UsageError, match=r"scorer\.engine=vllm: vLLM does not serve the head of scorer=own"):
        asyncio.run(engine.start())
