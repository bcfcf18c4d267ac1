"""What a scorer that loads a model asks of its workers' devices, and which engine computes it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import ClusterError, PlaceError, UsageError
from pipeline.engines.base import Surroundings
from pipeline.engines.vllm.arguments import GPU_MEMORY_SHARE
from pipeline.scorers import local, model
from pipeline.scorers.encoding import EncodedChain
from pipeline.scorers.model import ModelScorer, Prepared, Reading
from pipeline.scorers.own import Own
from pipeline.scorers.readouts import Classes, Readout, TokenPair, Value
from pipeline.scorers.settings import ModelEngine, OwnConfig
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


def by(
    monkeypatch: pytest.MonkeyPatch, asked: ModelScorer, readout: Readout, *, vllm_fails: bool = False, **facts: Any
) -> str:
    """What computes the model."""
    known = {"installed": True, "gpu": True, "serves": True, "newest_only": False, **facts}
    started: list[str] = []

    async def by_vllm(*_: object) -> None:
        if vllm_fails:
            raise PlaceError("the scorer m cannot be loaded: no memory is left")
        started.append("vllm")

    monkeypatch.setattr(local, "find_spec", lambda name: object() if known["installed"] else None)
    monkeypatch.setattr(local, "on_gpu", lambda: known["gpu"])
    monkeypatch.setattr(local, "serves", lambda names, cpus: known["serves"])
    monkeypatch.setattr(ModelScorer, "prepared", lambda scorer: prepared(readout))
    monkeypatch.setattr(local.LocalEngine, "_start_vllm", by_vllm)
    monkeypatch.setattr(local.LocalEngine, "_load", lambda *_: started.append("transformers"))
    asyncio.run(asked.engine(Surroundings(), newest_only=bool(known["newest_only"])).start())
    (found,) = started
    return found


def prepared(readout: Readout) -> Prepared:
    class Config:
        architectures = ("LlamaForTokenClassification",)

    reading = Reading(encode=lambda *_: EncodedChain(ids=(), ends=(), left_out=0), readout=readout)
    return Prepared(config=Config(), tokenizer=None, reading=reading, context=9, max_length=9)


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
        by(monkeypatch, scorer(tmp_path), Classes(), vllm_fails=True)


def test_a_head_with_one_number_is_no_head_for_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelScorer, "prepared", lambda scorer: prepared(Value()))
    engine = scorer(tmp_path, engine=ModelEngine.vllm).engine(Surroundings())
    with pytest.raises(UsageError, match=r"scorer\.engine=vllm: vLLM does not serve the head of scorer=own"):
        asyncio.run(engine.start())
