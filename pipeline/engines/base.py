"""What the rest of the pipeline asks of an engine."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Protocol

from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Request
from pipeline.data.prompts import Tokenizer


class PolicyFacts(Protocol):
    """What prompts are made with."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def max_model_len(self) -> int:
        """Context of the policy in tokens."""
        ...

    @property
    def policy(self) -> str:
        """Identity of the policy, as it stands in the column `policy`."""
        ...


class Engine(PolicyFacts, Protocol):
    """Samples completions. One engine serves many calls of `generate` at once, in one event loop."""

    @property
    def capacity(self) -> int:
        """Requests that run at once at most; known once it has started."""
        ...

    @property
    def load(self) -> Load: ...

    @property
    def work(self) -> EngineWork:
        """In as fine steps as the engine knows: tokens are counted while long completions are under way. Cheap to read."""
        ...

    @property
    def hardware(self) -> Hardware | None:
        """What it runs on; known once it has started. None where that is nothing that could be compared."""
        ...

    async def start(self) -> None:
        """Load the policy. Raises PolicyError with a remedy when it cannot be loaded here."""
        ...

    def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        """Every request's completion, exactly once, in batches as they finish, which need not be the order of issue.

        Requests are started in the order given. One that the engine does not serve, though it lives on, comes back without text
        and with the finish `engine_failed`. With `keep_tokens` completions carry their token ids. Raises EngineDied when the
        engine stopped working; what was yielded before stands.
        """
        ...

    def abort(self, request_ids: Iterable[str]) -> None:
        """Stop sampling these requests: those that have not finished come back without text and with the finish `abort`."""
        ...

    async def close(self) -> None:
        """Free the device; safe to call twice and after a failed start."""
        ...


def unanswered(request: Request, finish: Finish) -> Completion:
    """The completion of a request that has none."""
    return Completion(request=request, text="", finish=finish, n_tokens=0)


def attended(n_prompt: int, n_generated: int) -> int:
    """How many tokens stood before each generated one, added up: see `EngineWork`."""
    return n_generated * n_prompt + n_generated * (n_generated - 1) // 2
