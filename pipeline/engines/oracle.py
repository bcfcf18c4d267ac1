"""An engine with known success probabilities, for tests and dry runs. It is never chosen implicitly.

Every completion is a pure function of (seed, request id). Which rollouts succeed does not depend on timing, order or the
number of workers, so the expected labels of a run are known in advance.

`policy.oracle.world` chooses what is written. In the flat world, `true_value` is the success probability of a prefix, and a
completion is two lines with a made-up number of tokens. In the tree world (`oracle_tree`), a completion writes further steps of
the problem's tree up to the end of the chain, and each byte is a token. A prefix that is not of the tree is continued as in the
flat world.

A completion ends at the first of its request's stop texts, which it includes, or after `Request.max_tokens`, or in the tree
world where the context is full. In the flat world a text that is cut has the same share of the made-up tokens. The settings of
`sampling` have no effect, so that values do not depend on them.

Not covered: the values of the flat world are not consistent where the oracle sampled the chain itself. All its completions
begin with the same step, so every rollout of the bare problem reproduces the first step, but the two prefixes have different
values.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pipeline.config.fields import BY_GROUP
from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.config.oracle_world import World, WorldSettings
from pipeline.core.errors import UsageError
from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Problem, Request
from pipeline.engines.base import Engine, Policy, PolicyFacts, Surroundings, empty_completion, longest
from pipeline.engines.oracle_tree import USUAL, Shape, Tree, uniform, wrong_answers
from pipeline.engines.oracle_tree import draw as _draw
from pipeline.graders.base import Ending

TOKENS_PER_STEP = 20
"""Tokens of the shortest completion in the flat world; the longest has almost twice as many. In the tree world: least tokens of
a step, except the last one, which has those of its text."""
_CHUNK = 256
_REMEMBERED_VALUES = 65_536
_CONTEXT = 1_000_000
_UNIT = 1 << 64


@dataclass(kw_only=True, slots=True)
class OracleConfig(WorldSettings):
    """What the oracle answers."""

    SECTION: ClassVar[str] = "policy.oracle"


@dataclass(kw_only=True, slots=True)
class OraclePolicyConfig(PolicyConfig):
    MADE_UP: ClassVar[str] = "the oracle draws them from success probabilities of its own, without a model"
    kind: Annotated[str, BY_GROUP] = "oracle"
    oracle: OracleConfig = field(default_factory=OracleConfig)


def true_value(seed: int, spread: float, problem: Problem, prefix_id: str) -> float:
    """P(correct | prefix) of the oracle: the problem's own value, shifted by at most `spread` for each prefix."""
    return value_of(seed, spread, problem.problem_id, prefix_id)


def value_of(seed: int, spread: float, problem_id: str, prefix_id: str) -> float:
    """`true_value` of a prefix of the problem with this id."""
    difficulty = uniform(f"{seed}:{problem_id}")
    return min(1.0, max(0.0, difficulty + spread * (2 * uniform(f"{seed}:{prefix_id}") - 1)))


class ByteTokenizer:
    """One token per UTF-8 byte."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8", "replace"))

    encode_plain = encode
    as_text = staticmethod(str)

    def encode_chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        return self.encode(
            "".join(f"{message['role']}: {message['content']}\n" for message in messages) + "assistant: "
        )

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode("utf-8", "replace")


class OracleEngine:
    """See the module."""

    def __init__(self, policy: OraclePolicyConfig, shape: Shape = USUAL) -> None:
        self._seed = policy.oracle.seed
        self._spread = shape.spread
        self._generated = 0
        self._prompted = 0
        self._steps = 0
        self._waiting = 0
        self._outstanding: set[str] = set()
        self._aborted: set[str] = set()
        self._values: dict[str, float] = {}
        self.tokenizer = ByteTokenizer()
        self.max_model_len = policy.max_model_len or _CONTEXT
        self.capacity = _CHUNK
        self.hardware: Hardware | None = None
        self._tree = Tree(self._seed, shape, TOKENS_PER_STEP) if policy.oracle.world is World.tree else None
        self.policy = f"oracle:seed={self._seed}" + (",world=tree" if self._tree else "")

    @property
    def load(self) -> Load:
        return Load(running=min(self._waiting, _CHUNK), waiting=max(0, self._waiting - _CHUNK))

    @property
    def work(self) -> EngineWork:
        return EngineWork(generated=self._generated, steps=self._steps, prompt=self._prompted, prefilled=self._prompted)

    async def start(self) -> None:
        return

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        self._waiting += len(requests)
        self._outstanding.update(request.request_id for request in requests)
        for start in range(0, len(requests), _CHUNK):
            batch = [self._complete(request, keep_tokens) for request in requests[start : start + _CHUNK]]
            await self.pause(batch)
            self._outstanding.difference_update(completion.request.request_id for completion in batch)
            self._waiting -= len(batch)
            self._generated += sum(completion.n_tokens for completion in batch)
            self._prompted += sum(len(completion.request.prefix.prompt_ids) for completion in batch)
            self._steps += max(completion.n_tokens for completion in batch)
            yield batch

    async def pause(self, batch: Sequence[Completion]) -> None:
        """What passes before a batch is written."""
        await asyncio.sleep(0)

    def abort(self, request_ids: Iterable[str]) -> None:
        self._aborted.update(self._outstanding.intersection(request_ids))

    async def close(self) -> None:
        return

    def _complete(self, request: Request, keep_tokens: bool) -> Completion:
        if request.request_id in self._aborted:
            self._aborted.remove(request.request_id)
            return empty_completion(request, Finish.ABORT)
        text, n_tokens = self._written(request)
        finish = Finish.STOP
        end = _first_end(text, request.stop)
        if end is not None and end < len(text):
            text, n_tokens = text[:end], self._count(text[:end], text, n_tokens)
        most = longest(request, usual=n_tokens, context=self.max_model_len) if self._tree else request.max_tokens
        if most is not None and most < n_tokens:
            text, n_tokens = self._cut(text, n_tokens, most)
            finish = Finish.LENGTH
        return Completion(
            request=request,
            text=text,
            finish=finish,
            n_tokens=n_tokens,
            token_ids=tuple(self.tokenizer.encode(text)) if keep_tokens else (),
        )

    def _written(self, request: Request) -> tuple[str, int]:
        """The text after a prefix, up to the end of the chain or to a stop text or further, and its number of tokens."""
        if self._tree is None:
            return self._flat(request)
        tree, problem, before = self._tree, request.problem, request.prefix.text
        path = tree.path_in(problem.problem_id, before)
        if path is None:
            steps = iter([self._flat(request)[0]])
        else:
            further = tree.drawn(problem.problem_id, path, request.request_id)
            steps = (tree.step(problem, each) for each in further)
        text = ""
        for step in steps:
            ends_a_line = not text and before.strip() and not before.endswith("\n")
            text += f"\n{step}" if ends_a_line else step
            if _first_end(text, request.stop) is not None:
                break
        return text, len(self.tokenizer.encode(text))

    def _flat(self, request: Request) -> tuple[str, int]:
        prefix_id = request.prefix.prefix_id
        value = self._values.get(prefix_id)
        if value is None:
            value = true_value(self._seed, self._spread, request.problem, prefix_id)
            if len(self._values) >= _REMEMBERED_VALUES:
                self._values.clear()
            self._values[prefix_id] = value
        draw = _draw(f"{self._seed}:{request.request_id}")
        right = draw / _UNIT < value
        golds = request.problem.golds
        text = f"So the work is done.\nThe answer is {golds[0] if right and golds else _wrong(golds, draw)}."
        return text, TOKENS_PER_STEP + draw % TOKENS_PER_STEP

    def _count(self, part: str, whole: str, n_tokens: int) -> int:
        """The number of tokens of the beginning of a text that has `n_tokens`."""
        if self._tree is not None:
            return len(self.tokenizer.encode(part))
        return max(1, math.ceil(n_tokens * len(part) / len(whole)))

    def _cut(self, text: str, n_tokens: int, most: int) -> tuple[str, int]:
        """The beginning of a text that has the first `most` of its `n_tokens` tokens, and their number. No character is cut."""
        if self._tree is None:
            return text[: len(text) * most // n_tokens], most
        part = bytes(self.tokenizer.encode(text)[:most]).decode("utf-8", "ignore")
        return part, len(self.tokenizer.encode(part))


def _first_end(text: str, stop: Sequence[str]) -> int | None:
    """Where the stop text ends that ends first. None if `text` has none."""
    return min((at + len(each) for each in stop if each and (at := text.find(each)) >= 0), default=None)


def _wrong(golds: Sequence[str], draw: int) -> str:
    """An answer that is not in `golds`: a larger number where all of them are whole numbers, else words."""
    wrong = wrong_answers(golds)
    return wrong[draw % 3 if wrong[0].lstrip("-").isdigit() else 0]


class Oracle(Policy):
    """The oracle as a policy (`policy=oracle`)."""

    Config = OraclePolicyConfig
    settings: OraclePolicyConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        return OracleEngine(self.settings)

    def world(self) -> WorldSettings:
        return self.settings.oracle

    def check_stepwise(self) -> None:
        if self.settings.oracle.world is World.flat:
            raise UsageError(
                "with policy.oracle.world=flat every completion is two lines, whatever is before it, so that a chain that is "
                "sampled step by step does not end: give policy.oracle.world=tree"
            )

    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        return OracleEngine(self.settings)
