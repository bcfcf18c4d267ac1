"""A server with the routes that vLLM has for process reward models, which computes a tiny model with transformers.

An answer can be bent before it is sent."""

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from aiohttp import web
from transformers import AutoModelForCausalLM, AutoModelForTokenClassification

from pipeline.core.registry import GivenObject
from pipeline.data.prompts import encoder
from pipeline.scorers.encoding import encode_chain
from pipeline.scorers.model import ModelScorer, Reading
from pipeline.scorers.readouts import Readout, TokenPair
from pipeline.scorers.registry import SCORERS
from pipeline.scorers.settings import OwnConfig
from tests.engines.served import beside, listening
from tests.scorers.loaded import chain
from tests.tiny.policy import ASSET

MODEL = "prm"
CONTEXT = 192
Json = dict[str, Any]
Bend = Callable[[Json], Any]


def classes_folder(folder: Path) -> Path:
    """The tiny model with a random head of two classes."""
    torch.manual_seed(3)
    model = AutoModelForTokenClassification.from_pretrained(ASSET, num_labels=2, dtype=torch.float32)
    with torch.no_grad():
        model.score.weight.normal_(std=0.7)
        model.score.bias.copy_(torch.tensor([0.4, -0.3]))
    model.config.stepvalue_separator = "\n"
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(ASSET / name, folder / name)
    return folder


class Signs(ModelScorer):
    """A layout for tests: the words + and - after every step and its separator."""

    Config = OwnConfig
    settings: OwnConfig
    architectures = ("ForCausalLM",)
    what = "a language model"

    def load(self, device: str, readout: Readout) -> Any:
        raise NotImplementedError

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        encode = encoder(tokenizer)
        good, bad = (ids[0] for ids in encode(["+", "-"]))
        return Reading(
            encode=lambda problem, steps, most: encode_chain(
                encode, problem, steps, separator="\n", bos=None, max_length=most
            ),
            readout=TokenPair(good=good, bad=bad),
        )


@contextmanager
def signs_offered() -> Iterator[str]:
    """The name under which `Signs` can be chosen."""
    given = GivenObject(made=Signs, loaded=Signs, make=Signs, where="tests:Signs", code="0")
    with SCORERS.offer("signs", given):
        yield "signs"


@dataclass(kw_only=True)
class PrmServer:
    """`folder`: of a model with classes, or of a language model. `tags`: /pooling returns the rows of these positions alone.
    `listed`: most likely tokens that /completions lists, whatever is asked for."""

    folder: Path = ASSET
    classes: bool = False
    context: int = CONTEXT
    listed: int = 5
    ids: bool = True
    """Whether tokens are listed by their ids, as vLLM does, or by their texts."""
    bend: Bend | None = None
    status: int = 200
    tags: Sequence[int] | None = None
    paths: list[str] = field(default_factory=list)
    bodies: list[Json] = field(default_factory=list)
    url: str = ""
    loaded: Any = None

    async def models(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"data": [{"id": MODEL, "max_model_len": self.context}]})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.paths.append(request.path)
        self.bodies.append(body)
        if self.status != 200:
            return web.json_response({"error": {"message": "no"}}, status=self.status)
        made = await asyncio.to_thread(self._made, request.path, body)
        bent = self.bend(made) if self.bend else made
        return web.Response(
            body=bent if isinstance(bent, bytes) else json.dumps(bent).encode(), content_type="application/json"
        )

    def _made(self, path: str, body: Json) -> Json:
        common = {"model": body["model"], "usage": {"prompt_tokens": 1}}
        if path == "/v1/completions":
            return {**common, "choices": [self._next(body)]}
        assert body["use_activation"] is True
        assert body["add_special_tokens"] is False
        rows = self._logits(body["input"]).softmax(-1)
        if path == "/classify":
            probs = rows[-1].tolist()
            return {**common, "data": [{"index": 0, "label": None, "probs": probs, "num_classes": len(probs)}]}
        assert body["task"] == "token_classify"
        kept = rows if self.tags is None else rows[list(self.tags)]
        return {**common, "data": [{"index": 0, "object": "pooling", "data": kept.tolist()}]}

    def _next(self, body: Json) -> Json:
        logprobs = self._logits(body["prompt"])[-1].log_softmax(-1)
        allowed = body.get("allowed_token_ids")
        if allowed is None:
            biased = logprobs.clone()
            for token, bias in body["logit_bias"].items():
                biased[int(token)] += bias
            logprobs = biased.log_softmax(-1)
            chosen = int(logprobs.argmax())
        else:
            chosen = max(allowed, key=lambda token: float(logprobs[token]))
        top = logprobs.topk(min(self.listed, body["logprobs"])).indices.tolist()
        return {
            "index": 0,
            "text": "?",
            "finish_reason": "length",
            "logprobs": {
                "tokens": [self._name(chosen)],
                "token_logprobs": [float(logprobs[chosen])],
                "top_logprobs": [{self._name(token): float(logprobs[token]) for token in {*top, chosen}}],
            },
        }

    def _name(self, token: int) -> str:
        vocabulary = json.loads((self.folder / "tokenizer.json").read_text())["model"]["vocab"]
        return f"token_id:{token}" if self.ids else {number: text for text, number in vocabulary.items()}[token]

    def _logits(self, ids: Sequence[int]) -> torch.Tensor:
        with torch.no_grad():
            return self.loaded(torch.tensor([list(ids)])).logits[0]


@contextmanager
def prm_served(server: PrmServer) -> Iterator[PrmServer]:
    """The listening server, in a thread of its own. Its `url` ends in /v1."""
    kind = AutoModelForTokenClassification if server.classes else AutoModelForCausalLM
    server.loaded = kind.from_pretrained(server.folder, dtype=torch.float32).eval()
    app = web.Application()
    app.router.add_get("/v1/models", server.models)
    for path in ("/pooling", "/classify") if server.classes else ("/v1/completions",):
        app.router.add_post(path, server.answer)
    with beside(listening(app)) as server.url:
        yield server


CHAINS = [
    chain(0, "1+2=", "1+2=3", "#3"),
    chain(1, "9-4*2=", "4*2=8", "9-8=1", "", "#1"),
    chain(2, "7=", "#7\n"),
]
"""Steps of all kinds: several, an empty one, and one that ends in the separator."""
