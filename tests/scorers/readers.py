"""Random tiny models of each kind that both engines read, with their scorers, and chains for them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen2Model, Qwen2Tokenizer

from pipeline.core.ids import content_id
from pipeline.scorers.base import ChainText
from pipeline.scorers.encoding import encode_chain, encoder
from pipeline.scorers.heads import TokenModel, classes_of
from pipeline.scorers.model import ModelScorer, Reading
from pipeline.scorers.own import Own
from pipeline.scorers.readouts import Classes, Readout, TokenPair
from pipeline.scorers.settings import ModelScorerConfig, OwnConfig
from pipeline.train.model import new_model
from tests.tiny.policy import ASSET

SEPARATOR = "\n"
GOOD, BAD = "1", "0"
QWEN = "Qwen2ForProcessRewardModel"


class AtLineEnds(ModelScorer):
    """Reads a model at the last token of each line."""

    what = "a model of a test"

    def readout(self, tokenizer: Any) -> Readout:
        raise NotImplementedError

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        encode = encoder(tokenizer)
        return Reading(
            encode=lambda problem, steps, max_length: encode_chain(
                encode, problem, steps, separator=SEPARATOR, bos=tokenizer.bos_token_id, max_length=max_length
            ),
            readout=self.readout(tokenizer),
        )


class Pairs(AtLineEnds):
    """A causal model whose next token says good or bad."""

    architectures = ("ForCausalLM",)

    def readout(self, tokenizer: Any) -> Readout:
        good, bad = (tokenizer.convert_tokens_to_ids(text) for text in (GOOD, BAD))
        return TokenPair(good=good, bad=bad)

    def load(self, device: str, readout: Readout) -> TokenModel:
        module = AutoModelForCausalLM.from_pretrained(self.settings.model, dtype=torch.float32).eval()
        pair = self.readout(AutoTokenizer.from_pretrained(self.settings.model))
        assert isinstance(pair, TokenPair)
        ids = [pair.good, pair.bad]
        return TokenModel(
            module=module, at=lambda inputs, rows, columns: module(**inputs).logits[rows, columns][:, ids]
        )


class QwenHead(torch.nn.Module):  # type: ignore[misc]  # torch is untyped here
    """The layout of the published class: a trunk, and two layers with a ReLU between them at every token."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.model = Qwen2Model(config)
        size = config.hidden_size
        self.score = torch.nn.Sequential(torch.nn.Linear(size, size), torch.nn.ReLU(), torch.nn.Linear(size, 2))

    def forward(self, **inputs: torch.Tensor) -> Any:
        return _Logits(self.score(self.model(**inputs).last_hidden_state))


@dataclass
class _Logits:
    logits: torch.Tensor


class QwenHeads(AtLineEnds):
    architectures = (QWEN,)

    def readout(self, tokenizer: Any) -> Readout:
        return Classes()

    def load(self, device: str, readout: Readout) -> TokenModel:
        from safetensors.torch import load_file

        module = QwenHead(Qwen2Config.from_pretrained(self.settings.model))
        module.load_state_dict(load_file(Path(self.settings.model) / "model.safetensors"))
        return classes_of(module.eval())


def own_model(folder: Path) -> ModelScorer:
    """The tiny policy's trunk under a random head, as `train` writes it."""
    torch.manual_seed(0)
    model = new_model(str(ASSET), None, separator=SEPARATOR, layers=None)
    _spread(model.score)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(ASSET).save_pretrained(folder)
    return Own(OwnConfig(model=str(folder), dtype="float32", max_num_seqs=32))


def pair_model(folder: Path) -> ModelScorer:
    """The tiny policy itself."""
    return Pairs(ModelScorerConfig(kind="pairs", model=str(ASSET), dtype="float32", max_num_seqs=32))


def qwen_model(folder: Path) -> ModelScorer:
    """Two layers with random weights."""
    torch.manual_seed(1)
    # transformers gives every model of this type this tokenizer: bytes, and what was merged of them.
    tokenizer = Qwen2Tokenizer(vocab={byte: at for at, byte in enumerate(sorted(ByteLevel.alphabet()))}, merges=[])
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=192, tie_word_embeddings=False,
    )  # fmt: skip
    module = QwenHead(config)
    for layer in (module.score[0], module.score[2]):
        _spread(layer)
    folder.mkdir(exist_ok=True)
    save_file(module.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)
    stated = {**config.to_dict(), "architectures": [QWEN], "dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(stated))
    return QwenHeads(ModelScorerConfig(kind="qwen_heads", model=str(folder), dtype="float32", max_num_seqs=32))


MODELS: dict[str, Callable[[Path], ModelScorer]] = {"own": own_model, "pairs": pair_model, "qwen": qwen_model}


def chain_text(number: int, problem: str, steps: Sequence[str]) -> ChainText:
    prefixes = (content_id("prefix", problem, *steps[: at + 1]) for at in range(len(steps)))
    return ChainText(
        chain_id=f"c{number}", problem_id=problem, problem=problem, steps=tuple(steps), prefix_ids=tuple(prefixes)
    )


def chains(count: int, *, steps: int = 5) -> list[ChainText]:
    """Chains of different lengths about different problems, of characters that the tiny policy knows."""
    return [
        chain_text(
            number,
            f"{number}+{number * 3}*2-{number % 7}",
            [f"{number * step}+{step}={number * step + step}" for step in range(1, steps + 1 - number % 3)],
        )
        for number in range(count)
    ]


def _spread(layer: Any) -> None:
    """Random numbers large enough that scores differ."""
    with torch.no_grad():
        layer.weight.normal_(0, layer.in_features**-0.5)
        if layer.bias is not None:
            layer.bias.normal_(0, 0.5)
