"""Settings of `policy=oracle`: what an engine without a model answers, and which faults it plays. Part of those in `config`."""

import re
from dataclasses import dataclass

from pipeline.ranges import check

_START_OF_ID = re.compile(r"[0-9a-f]*(-[0-9]*)?")


@dataclass(kw_only=True, slots=True)
class OracleConfig:
    """The engine with known success probabilities: what it answers, how slowly, and which faults it plays."""

    seed: int = 0
    spread: float = 0.35
    """How far the value of a prefix may lie from its problem's."""
    tokens_per_step: int = 20
    tokens_per_second: float = 0.0
    """0: no delay."""
    fail_after: int = 0
    """The engine dies after so many completions; 0: never."""
    hang_after: int = 0
    """The engine stops answering after so many completions; 0: never."""
    wrong_after: int = 0
    """After so many completions the engine leaves one out and gives another one twice; 0: never."""
    poison: str = ""
    """A request whose rollout_id starts so kills the engine, whenever it is asked; empty: none."""
    refuse: str = ""
    """Requests whose rollout_id starts so come back unserved (engine_failed); empty: none."""

    def __post_init__(self) -> None:
        check(0 <= self.spread <= 1, "policy.oracle.spread", self.spread, "between 0 and 1")
        check(self.tokens_per_step >= 1, "policy.oracle.tokens_per_step", self.tokens_per_step, "at least 1")
        check(self.tokens_per_second >= 0, "policy.oracle.tokens_per_second", self.tokens_per_second, "0 or more")
        check(self.fail_after >= 0, "policy.oracle.fail_after", self.fail_after, "0 or more")
        check(self.hang_after >= 0, "policy.oracle.hang_after", self.hang_after, "0 or more")
        check(self.wrong_after >= 0, "policy.oracle.wrong_after", self.wrong_after, "0 or more")
        for key, start in (("policy.oracle.poison", self.poison), ("policy.oracle.refuse", self.refuse)):
            check(
                _START_OF_ID.fullmatch(start) is not None, key, repr(start), "the beginning of a rollout_id, or empty"
            )
