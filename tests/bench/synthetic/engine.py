"""The synthetic policy behind the interface of engines: it reads prefixes and writes text, token by token of a byte each."""

import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence

import numpy as np

from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Request
from pipeline.engines.oracle import ByteTokenizer
from tests.bench.synthetic.language import RENDERINGS, WORDINGS, answer_text, question_of, state_of, step_text
from tests.bench.synthetic.policy import Policy

_CHUNK = 256
_CONTEXT = 1_000_000


class SyntheticEngine:
    """A completion is a pure function of the seed and the request's id. With `repeats_wrong` the policy says everything twice
    before it ends with a wrong answer."""

    def __init__(self, policy: Policy, *, seed: int, repeats_wrong: bool = False) -> None:
        self._policy = policy
        self._seed = seed
        self._repeats_wrong = repeats_wrong
        self._waiting = 0
        self.capacity = _CHUNK
        self.work = EngineWork()
        self.tokenizer = ByteTokenizer()
        self.max_model_len = _CONTEXT
        self.policy = f"synthetic:steps={policy.steps},states={len(policy.right)},seed={seed}"

    @property
    def load(self) -> Load:
        return Load(running=min(self._waiting, _CHUNK), waiting=max(0, self._waiting - _CHUNK))

    async def start(self) -> None:
        return

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        self._waiting += len(requests)
        for start in range(0, len(requests), _CHUNK):
            batch = [self._complete(request, keep_tokens) for request in requests[start : start + _CHUNK]]
            self._waiting -= len(batch)
            self.work += EngineWork(generated=sum(completion.n_tokens for completion in batch))
            yield batch

    def abort(self, request_ids: Iterable[str]) -> None:
        """Whole batches come at once: there is never anything to stop."""

    async def close(self) -> None:
        return

    def _complete(self, request: Request, keep_tokens: bool) -> Completion:
        text = self._text(request)
        ids = tuple(self.tokenizer.encode(text))
        return Completion(
            request=request,
            text=text,
            finish=Finish.STOP,
            n_tokens=len(ids),
            token_ids=ids if keep_tokens else (),
        )

    def _text(self, request: Request) -> str:
        digest = hashlib.blake2b(f"{self._seed}:{request.request_id}".encode(), digest_size=8).digest()
        random = np.random.default_rng(int.from_bytes(digest, "little"))
        state = state_of(request.problem, request.prefix.text)
        lines = []
        for _ in range(self._policy.steps - 1 - request.prefix.step_index):
            state = int(random.choice(len(self._policy.moves), p=self._policy.moves[state]))
            lines.append(step_text(state, int(random.integers(WORDINGS))))
        right = bool(random.random() < self._policy.right[state])
        lines.append(answer_text(question_of(request.problem), right, int(random.integers(RENDERINGS))))
        return "".join(lines) * (2 if self._repeats_wrong and not right else 1)
