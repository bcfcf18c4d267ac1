"""A grader for answers in words: the last line counts, and capital letters do not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pipeline.config.fields import RELABEL
from pipeline.config.label import GraderConfig
from pipeline.core.records import Verdict
from pipeline.graders.base import Grader


@dataclass(kw_only=True, slots=True)
class CaselessConfig(GraderConfig):
    kind: Annotated[str, RELABEL] = "caseless"
    drop: Annotated[str, RELABEL] = "."
    """Characters at the end of an answer that do not count."""


class Caseless(Grader):
    Config = CaselessConfig
    settings: CaselessConfig

    def extract(self, texts: Sequence[str], *, complete: bool) -> list[str | None]:
        return [text.strip().splitlines()[-1] if complete and text.strip() else None for text in texts]

    def grade(self, golds: Sequence[Sequence[str]], answers: Sequence[str]) -> list[Verdict]:
        return [
            Verdict.CORRECT if self._plain(answer) in map(self._plain, accepted) else Verdict.INCORRECT
            for accepted, answer in zip(golds, answers, strict=True)
        ]

    def parses(self, golds: Sequence[str]) -> list[bool]:
        return [bool(self._plain(gold)) for gold in golds]

    def _plain(self, text: str) -> str:
        # "So the answer is Paris." and "paris" are the same answer.
        return text.strip().rstrip(self.settings.drop).rpartition(" ")[2].casefold()
