"""What must be true of the log of a search, whatever its method: ids, the order of steps, ends, counts and scores.

It does not ask which samples the method wants; `searches` does, by searching again with the log.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pipeline.core.records import ChainText, Finish, Verdict
from pipeline.searches.base import WHOLE
from pipeline.searches.ids import node_id, prefix_id, root_id, sample_id
from pipeline.searches.log import FAILED_DRAW, failure

Row = Mapping[str, Any]
_UNGRADED = (Finish.ENGINE_FAILED, Finish.ABORT)
"""How a sample ends whose text is not graded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A node that a sample may follow. `steps`: the texts that lead to it."""

    steps: tuple[str, ...]
    ended: bool = False


def sample_faults(problem: ChainText, samples: Sequence[Row]) -> Iterator[str]:
    """The faults in the rows of `samples` of one problem."""
    about = f"of problem {problem.problem_id}"
    known = _known(problem, samples)
    for each, count in Counter(row["sample_id"] for row in samples).items():
        if count > 1:
            yield f"sample {each} {about} is there {count} times"
    for row in samples:
        for fault in _sample_faults(problem, row, known):
            yield f"sample {row['sample_id']} {about} {fault}"


def score_faults(
    problem: ChainText, samples: Sequence[Row], scores: Sequence[Row], *, calibrated: bool
) -> Iterator[str]:
    """The faults in the rows of `stepscores` of one problem. `calibrated`: scores may differ from raw scores."""
    about = f"of problem {problem.problem_id}"
    known = _known(problem, samples)
    prefixes = {prefix_id(problem.problem_id, node.steps): len(node.steps) for node in known.values() if node.steps}
    for each, count in Counter(row["prefix_id"] for row in scores).items():
        if count > 1:
            yield f"the score of prefix {each} {about} is there {count} times"
    for row in scores:
        for fault in _score_faults(row, prefixes, calibrated):
            yield f"the score of prefix {row['prefix_id']} {about} {fault}"


def _known(problem: ChainText, samples: Sequence[Row]) -> dict[str, _Known]:
    """The nodes that follow from the root, the given chain and the samples, by id."""
    known = {root_id(problem.problem_id): _Known(steps=())}
    steps: tuple[str, ...] = ()
    for index, text in enumerate(problem.steps):
        steps = (*steps, text.strip())
        known[node_id(problem.chain_id, index)] = _Known(steps=steps, ended=index == len(problem.steps) - 1)
    waiting: defaultdict[str, list[Row]] = defaultdict(list)
    for row in samples:
        if row["draw"] != FAILED_DRAW:
            waiting[row["node_id"]].append(row)
    due = list(known)
    for each in due:
        for row in waiting.pop(each, ()):
            steps = known[each].steps
            pieces = _pieces(row)
            for index, text in enumerate(pieces):
                steps = (*steps, text.strip()) if text.strip() else steps
                made = node_id(row["sample_id"], index)
                if made not in known:
                    known[made] = _Known(steps=steps, ended=row["ended"] and index == len(pieces) - 1)
                    due.append(made)
    return known


def _pieces(row: Row) -> list[str]:
    """The steps of a sample; one blank one if it has none."""
    return [row["text"][begin:end] for begin, end in pairwise((0, *row["step_ends"]))] or [""]


def _sample_faults(problem: ChainText, row: Row, known: Mapping[str, _Known]) -> Iterator[str]:
    if row["finish"] not in list(Finish):
        yield f"ended by {row['finish']!r:.60}, which is no way to end"
    if row["verdict"] is not None and row["verdict"] not in list(Verdict):
        yield f"has the verdict {row['verdict']!r:.60}, which is none"
    if row["draw"] == FAILED_DRAW:
        if row["sample_id"] != failure(problem.problem_id, problem.row).sample_id:
            yield "says that the problem kills engines, but has another id"
        return
    follows = known.get(row["node_id"])
    if follows is None:
        yield "follows no known step"
    elif row["sample_id"] != sample_id(
        row["node_id"], prefix_id(problem.problem_id, follows.steps), row["draw"], row["steps"]
    ):
        yield "has not the id that follows from its node, its draw and its steps"
    elif follows.ended:
        yield "follows a chain that has ended"
    elif row["number"] != len(follows.steps):
        yield f"has {len(follows.steps)} steps before it, but says {row['number']}"
    yield from _end_faults(row)
    yield from _answer_faults(problem, row)
    if row["seconds"] < 0 or row["took"] < 0 or row["n_prompt_tokens"] < 0:
        yield "has a negative time or number of tokens"


def _end_faults(row: Row) -> Iterator[str]:
    text, tokens = row["text"], row["token_ids"]
    ends, token_ends, asked = row["step_ends"], row["token_ends"], row["steps"]
    if len(ends) != len(token_ends):
        yield f"has {len(ends)} ends of steps in its text, but {len(token_ends)} in its tokens"
    if not _rises_to(ends, len(text)) or any(not piece.strip() for piece in _pieces(row) if ends):
        yield "has ends of steps that do not cut its text into steps"
    if not ends and text.strip():
        yield "has a text without a step"
    if not _rises_to(token_ends, len(tokens)):
        yield "has ends of steps that do not cut its tokens into steps"
    if row["n_tokens"] < len(tokens):
        yield f"keeps {len(tokens)} tokens, but only {row['n_tokens']} were generated"
    if asked != WHOLE and len(ends) > asked:
        yield f"has {len(ends)} steps, but {asked} were asked for"
    if not row["ended"] and (asked == WHOLE or len(ends) < asked):
        yield "has fewer steps than were asked for, although its chain has not ended"


def _rises_to(ends: Sequence[int], last: int) -> bool:
    """Whether ends rise from above 0 to `last`; no ends do."""
    return not ends or (all(one < other for one, other in pairwise((0, *ends))) and ends[-1] == last)


def _answer_faults(problem: ChainText, row: Row) -> Iterator[str]:
    if not row["ended"]:
        if row["answer"] is not None or row["verdict"] is not None:
            yield "has an answer or a verdict, although its chain has not ended"
        return
    if row["verdict"] is not None and not problem.golds:
        yield "has a verdict, although the right answer is not known"
    if row["verdict"] is None and problem.golds and row["finish"] not in _UNGRADED:
        yield "ends a chain and has no verdict, although the right answer is known"


def _score_faults(row: Row, prefixes: Mapping[str, int], calibrated: bool) -> Iterator[str]:
    depth = prefixes.get(row["prefix_id"])
    if depth is None:
        yield "is of no known beginning of a chain"
    elif row["step"] != depth:
        yield f"says step {row['step']}, but the prefix has {depth}"
    values = [row[name] for name in ("score", "raw_score", "reliability") if row[name] is not None]
    if any(not 0 <= value <= 1 for value in values):
        yield "has a score or a reliability that is not between 0 and 1"
    if (row["score"] is None) != (row["raw_score"] is None):
        yield "has only one of score and raw score"
    elif not calibrated and row["score"] != row["raw_score"]:
        yield f"is {row['score']}, but the scorer gave {row['raw_score']}, and there is no calibration"
    if row["fault"] is not None and row["score"] is not None:
        yield "has a reason for having none"
    if not 0 <= row["n_computed"] <= row["n_tokens"]:
        yield f"took {row['n_computed']} computed tokens of {row['n_tokens']}"
    if row["seconds"] < 0 or row["took"] < 0:
        yield "has a negative time"
