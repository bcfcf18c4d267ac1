"""Recorded rollouts, and an engine that answers with them.

One line of the file is one prefix: its id, what its rollouts came to in the order of issue, and their tokens. An outcome is one
letter: c correct, i incorrect, n no answer, u unparseable; a capital letter where the rollout was cut by `sampling.max_tokens`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from pipeline.core.errors import InputError
from pipeline.core.records import Completion, Finish, Request, Verdict
from pipeline.engines.base import BatchEngine
from pipeline.engines.oracle import ByteTokenizer

GSM8K = Path(__file__).parent / "gsm8k.jsonl"
LETTERS = {
    Verdict.CORRECT: "c",
    Verdict.INCORRECT: "i",
    Verdict.NO_ANSWER: "n",
    Verdict.UNPARSEABLE: "u",
}
CONTEXT = 1_000_000
_WRONG = "-987654321"
_TEXTS = {
    "i": f"So the answer is \\boxed{{{_WRONG}}}.",
    "n": "I do not know.",
    "u": r"So the answer is \boxed{5 \text{ dozen of flour and } 5 \text{ cups of flour}}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRollouts:
    """Of one prefix: a letter and a number of tokens for each rollout."""

    letters: str
    tokens: tuple[int, ...]

    @property
    def correct(self) -> list[bool]:
        """Of the graded rollouts."""
        return [letter == "c" for letter in self.letters.lower() if letter != "u"]

    def part(self, issues: Iterable[int]) -> "RecordedRollouts":
        """The rollouts with these numbers, in this order."""
        kept = list(issues)
        return RecordedRollouts(
            letters="".join(self.letters[issue] for issue in kept), tokens=tuple(self.tokens[issue] for issue in kept)
        )


def read_recorded(path: Path = GSM8K) -> dict[str, RecordedRollouts]:
    """By prefix id. Raises InputError for a file that is no recording."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {
            row["prefix_id"]: RecordedRollouts(letters=row["outcomes"], tokens=tuple(row["tokens"])) for row in rows
        }
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no recording: {type(error).__name__}: {error}") from error


def lines_of(rollouts: Iterable[Mapping[str, object]]) -> list[str]:
    """Lines of the file, from rows of a run's table `rollouts`. Raises ValueError for a verdict without a letter.

    A row needs `prefix_id`, `issue_index`, `verdict`, `finish` and `n_tokens`.
    """
    of_prefix: dict[str, dict[int, tuple[str, int]]] = {}
    for row in rollouts:
        if (letter := LETTERS.get(Verdict(str(row["verdict"])))) is None:
            raise ValueError(f"the verdict {row['verdict']} has no letter")
        shown = letter.upper() if row["finish"] == Finish.LENGTH else letter
        of_prefix.setdefault(str(row["prefix_id"]), {})[int(str(row["issue_index"]))] = shown, int(str(row["n_tokens"]))
    lines = []
    for prefix, found in sorted(of_prefix.items()):
        ordered = [found[issue] for issue in sorted(found)]
        letters, tokens = "".join(letter for letter, _ in ordered), [count for _, count in ordered]
        lines.append(json.dumps({"prefix_id": prefix, "outcomes": letters, "tokens": tokens}, separators=(",", ":")))
    return lines


class RecordedEngine(BatchEngine):
    """Answers with the recorded rollouts of each prefix, in order, with a text that the checker grades alike. What is asked for
    beyond them is drawn from them again, by the hash of the request. `repeated` counts these."""

    def __init__(self, recorded: Mapping[str, RecordedRollouts], *, policy: str) -> None:
        super().__init__(ByteTokenizer(), policy=policy, max_model_len=CONTEXT)
        self._recorded = recorded
        self.repeated = 0

    async def complete(self, requests: Sequence[Request]) -> Sequence[Completion]:
        return [self._completion(request) for request in requests]

    def _completion(self, request: Request) -> Completion:
        known = self._recorded[request.prefix.prefix_id]
        there, issue = len(known.letters), request.issue_index
        if issue >= there:
            issue = int.from_bytes(blake2b(request.request_id.encode(), digest_size=8).digest(), "little") % there
            self.repeated += 1
        letter = known.letters[issue]
        gold = request.problem.golds[0]
        return Completion(
            request=request,
            text=_TEXTS.get(letter.lower(), f"So the answer is \\boxed{{{gold}}}."),
            finish=Finish.LENGTH if letter.isupper() else Finish.STOP,
            n_tokens=known.tokens[issue],
        )
