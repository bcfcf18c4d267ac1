"""The verifier coq: verdicts on generated chains against `coqc`, which compiles each as a file; hostile steps; speed."""

from pathlib import Path
from typing import NamedTuple

from pipeline.core.errors import UsageError
from pipeline.verifiers.base import StepVerdict
from pipeline.verifiers.coq import toplevel
from pipeline.verifiers.coq.lexer import sentences
from pipeline.verifiers.coq.verifier import Coq
from pipeline.verifiers.settings import CoqConfig
from tests.bench.verdicts import (
    MOST_SHOWN,
    Timed,
    print_bars,
    print_kinds,
    print_reasons,
    print_verdictless,
    spent,
    timed,
)
from tests.verifiers.coq_hostile import CANARY, hostile
from tests.verifiers.coq_problems import Chain, first_rejected, generated

CHAINS = 200
SEED = 20_261_126
"""Not the seed of the tests."""
LEAST_SENTENCES = 20.0
"""A second."""


class _Judged(NamedTuple):
    """A step of a chain, from 0, what was said of it, and the first step that `coqc` rejects, None for none."""

    chain: Chain
    at: int
    said: Timed
    rejected: int | None

    @property
    def is_wrong(self) -> bool:
        match self.said.found.verdict:
            case StepVerdict.HOLDS:
                return self.rejected is not None and self.at >= self.rejected
            case StepVerdict.REFUTED:
                return self.at != self.rejected
        return False


def verify_coq(chains: int = CHAINS) -> None:
    path = toplevel.program()
    if path is None:
        raise UsageError(f"verify-coq needs {toplevel.PROGRAM}: {toplevel.REMEDY}")
    coq = Coq(CoqConfig())
    judged = [
        _Judged(chain, at, timed(coq, step), rejected)
        for chain in generated(chains, SEED)
        for rejected in [first_rejected(chain)]
        for at, step in enumerate(chain.contexts())
    ]
    print(f"\nverify-coq: {chains} generated chains of {len(judged):,} steps, with Coq {toplevel.version(path)}")
    for family in dict.fromkeys(each.chain.family for each in judged):
        print_kinds(family, [each.said.kind for each in judged if each.chain.family == family])
    print_reasons(each.said.found for each in judged if each.rejected is None or each.at <= each.rejected)
    wrong = [each for each in judged if each.is_wrong]
    for each in wrong[:MOST_SHOWN]:
        print(f"  WRONG {each.said.found.verdict}: {each.chain!r}, step {each.at + 1}: {each.said.found.evidence}")
    decided = print_verdictless({name: coq.verify(step) for name, step in hostile().items()})
    coq.close()
    errors = [each for each in judged if each.at == each.rejected]
    found = sum(each.said.found.verdict is StepVerdict.REFUTED for each in errors)
    own = sum(len(sentences(each.chain.steps[each.at])) for each in judged)
    times = [each.said.ms for each in judged]
    speed = 1000 * own / sum(times)
    print_bars(
        (not wrong, f"wrong verdicts: {len(wrong)}; first errors refuted: {found} of {len(errors)}"),
        (not decided, f"hostile steps with a verdict: {decided}"),
        (not Path(CANARY).exists(), "no hostile step has written a file"),
        (
            speed >= LEAST_SENTENCES,
            f"{speed:.0f} sentences of steps a second (asked: {LEAST_SENTENCES:g}), libraries included; {spent(times)}",
        ),
    )
