"""What must be true of the log of a search, whatever its method: ids, the order of steps, ends, counts and scores.

It does not ask which samples the method wants; `searches` does, by searching again with the log.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pipeline.core.records import ChainText, Finish, Verdict
from pipeline.core.tables import SampleAnswer, ScoreAnswer
from pipeline.searches.base import WHOLE, Node, sample_id
from pipeline.searches.log import FAILED_DRAW, failure, first_nodes, followed

_UNGRADED = (Finish.ENGINE_FAILED, Finish.ABORT)
"""How a sample ends whose text is not graded."""


def known_nodes(problem: ChainText, samples: Sequence[SampleAnswer]) -> dict[str, Node]:
    """The nodes of the problem, its chain and its samples, by id."""
    first = first_nodes(problem)
    made = (node for _, nodes in followed(problem, first, samples) for node in nodes)
    return {node.node_id: node for node in (*first, *made)}


def sample_faults(problem: ChainText, samples: Sequence[SampleAnswer], known: Mapping[str, Node]) -> Iterator[str]:
    """The faults in the samples of one problem, whose words may be none of their vocabularies."""
    about = f"of problem {problem.problem_id}"
    for each, count in Counter(sample.sample_id for sample in samples).items():
        if count > 1:
            yield f"sample {each} {about} is there {count} times"
    for sample in samples:
        for fault in _sample_faults(problem, sample, known):
            yield f"sample {sample.sample_id} {about} {fault}"


def score_faults(
    problem: ChainText, scores: Sequence[ScoreAnswer], known: Mapping[str, Node], *, calibrated: bool
) -> Iterator[str]:
    """The faults in the scores of one problem. `calibrated`: scores may differ from raw scores."""
    about = f"of problem {problem.problem_id}"
    depths = {node.prefix_id: node.depth for node in known.values() if node.depth}
    for each, count in Counter(score.prefix_id for score in scores).items():
        if count > 1:
            yield f"the score of prefix {each} {about} is there {count} times"
    for score in scores:
        for fault in _score_faults(score, depths, calibrated):
            yield f"the score of prefix {score.prefix_id} {about} {fault}"


def _sample_faults(problem: ChainText, sample: SampleAnswer, known: Mapping[str, Node]) -> Iterator[str]:
    if sample.finish not in list(Finish):
        yield f"ended by {sample.finish!r:.60}, which is no way to end"
    if sample.verdict is not None and sample.verdict not in list(Verdict):
        yield f"has the verdict {sample.verdict!r:.60}, which is none"
    if sample.draw == FAILED_DRAW:
        if sample.sample_id != failure(problem.problem_id, problem.row).sample_id:
            yield "says that the problem kills engines, but has another id"
        return
    follows = known.get(sample.node_id)
    if follows is None:
        yield "follows no known step"
    elif sample.sample_id != sample_id(sample.node_id, follows.prefix_id, sample.draw, sample.steps):
        yield "has not the id that follows from its node, its draw and its steps"
    elif follows.ended:
        yield "follows a chain that has ended"
    elif sample.number != follows.depth:
        yield f"has {follows.depth} steps before it, but says {sample.number}"
    yield from _end_faults(sample)
    yield from _answer_faults(problem, sample)
    if sample.seconds < 0 or sample.took < 0 or sample.n_prompt_tokens < 0:
        yield "has a negative time or number of tokens"


def _end_faults(sample: SampleAnswer) -> Iterator[str]:
    text, tokens = sample.text, sample.token_ids
    ends, token_ends, asked = sample.step_ends, sample.token_ends, sample.steps
    if len(ends) != len(token_ends):
        yield f"has {len(ends)} ends of steps in its text, but {len(token_ends)} in its tokens"
    if not _rises_to(ends, len(text)) or any(not text[begin:end].strip() for begin, end in pairwise((0, *ends))):
        yield "has ends of steps that do not cut its text into steps"
    if not ends and text.strip():
        yield "has a text without a step"
    if not _rises_to(token_ends, len(tokens)):
        yield "has ends of steps that do not cut its tokens into steps"
    if sample.n_tokens < len(tokens):
        yield f"keeps {len(tokens)} tokens, but only {sample.n_tokens} were generated"
    if asked != WHOLE and len(ends) > asked:
        yield f"has {len(ends)} steps, but {asked} were asked for"
    if not sample.ended and (asked == WHOLE or len(ends) < asked):
        yield "has fewer steps than were asked for, although its chain has not ended"


def _rises_to(ends: Sequence[int], last: int) -> bool:
    """Whether ends rise from above 0 to `last`; no ends do."""
    return not ends or (all(one < other for one, other in pairwise((0, *ends))) and ends[-1] == last)


def _answer_faults(problem: ChainText, sample: SampleAnswer) -> Iterator[str]:
    if not sample.ended:
        if sample.answer is not None or sample.verdict is not None:
            yield "has an answer or a verdict, although its chain has not ended"
        return
    if sample.verdict is not None and not problem.golds:
        yield "has a verdict, although the right answer is not known"
    if sample.verdict is None and problem.golds and sample.finish not in _UNGRADED:
        yield "ends a chain and has no verdict, although the right answer is known"


def _score_faults(score: ScoreAnswer, depths: Mapping[str, int], calibrated: bool) -> Iterator[str]:
    depth = depths.get(score.prefix_id)
    if depth is None:
        yield "is of no known beginning of a chain"
    elif score.step != depth:
        yield f"says step {score.step}, but the prefix has {depth}"
    values = [each for each in (score.score, score.raw_score, score.reliability) if each is not None]
    if any(not 0 <= value <= 1 for value in values):
        yield "has a score or a reliability that is not between 0 and 1"
    if (score.score is None) != (score.raw_score is None):
        yield "has only one of score and raw score"
    elif not calibrated and score.score != score.raw_score:
        yield f"is {score.score}, but the scorer gave {score.raw_score}, and there is no calibration"
    if score.fault is not None and score.score is not None:
        yield "has a reason for having none"
    if not 0 <= score.n_computed <= score.n_tokens:
        yield f"took {score.n_computed} computed tokens of {score.n_tokens}"
    if score.seconds < 0 or score.took < 0:
        yield "has a negative time"
