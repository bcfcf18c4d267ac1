"""Rewards for RL trainers: 1.0 where the final answer is right, 0.0 where it is wrong or missing.

`accuracy_reward` is a reward function of TRL's GRPO and RLOO trainers, `compute_score` one of verl, which also finds it by the
path of this file. Both use the default settings of the checker, from any thread, in any process, in a Ray actor.

What cannot be graded (unparseable, over_limit, timeout, crashed) is not wrong. TRL is given None, which leaves this function
out for that sample; where it is the only one, the sample gets no advantage and does not count in its group's mean (before
TRL's pull request 5902 it counted as 0.0). verl has no such value and is given 0.0.
Not covered: outputs that were cut by a token limit, which trainers do not tell; other settings, for which a function of
your own calls `grade`.
"""

from collections.abc import Callable, Mapping, Sequence

from pipeline.core.records import UNGRADED, Grade, Verdict
from pipeline.graders.shared import grade, shared_checker

RIGHT = 1.0
WRONG = 0.0
_STATED = ("\\boxed", "\\fbox", "####")


def accuracy_reward(
    completions: Sequence[object],
    answer: Sequence[object] | None = None,
    *,
    ground_truth: Sequence[object] | None = None,
    solution: Sequence[object] | None = None,
    log_extra: Callable[[str, list[str]], None] | None = None,
    log_metric: Callable[[str, float], None] | None = None,
    **_columns: object,
) -> list[float | None]:
    """One reward per completion: 1.0 right, 0.0 wrong or without an answer, None not gradable.

    A completion is a text or a list of messages, whose last one by the assistant counts; its content is a text or a list
    of parts. The golds are the data set's column `answer`, else `ground_truth`, else `solution`: texts, numbers, or lists
    of those; of a text with a `\\boxed{}` or `####` the stated answer counts. Where the trainer offers its logs, verdicts
    and answers go to the completions table, and the share of the ungraded is a metric. Raises ValueError where the data
    set has none of the columns, or its column another length.
    """
    golds = next((column for column in (answer, ground_truth, solution) if column is not None), None)
    if golds is None:
        raise ValueError("accuracy_reward needs a column `answer`, `ground_truth` or `solution` in the data set")
    if len(golds) != len(completions):
        raise ValueError(f"accuracy_reward was given {len(completions)} completions, but {len(golds)} known answers")
    grades = [grade(_gold(gold), _said(completion)) for gold, completion in zip(golds, completions, strict=True)]
    if log_extra is not None:
        log_extra("verdict", [found.verdict.value for found in grades])
        log_extra("extracted_answer", [found.answer for found in grades])
    if log_metric is not None and grades:
        log_metric("ungraded", sum(found.verdict in UNGRADED for found in grades) / len(grades))
    return [None if found.verdict in UNGRADED else _reward(found) for found in grades]


def compute_score(
    data_source: str, solution_str: str, ground_truth: object, extra_info: object = None, **_more: object
) -> float:
    """verl's reward of one output: 1.0 right, 0.0 for everything else, the ungraded included.

    `ground_truth` is a text, a number, or a list of those of which any counts; of a text with a `\\boxed{}` or `####` the
    stated answer. `data_source` and `extra_info` change nothing. Raises ValueError for a mapping, which no answer equals.
    """
    if isinstance(ground_truth, Mapping):
        raise ValueError(
            "compute_score needs the known answer itself as ground_truth,"
            f" not a mapping with {', '.join(map(str, ground_truth))}: put it into the data set's reward_model.ground_truth"
        )
    return _reward(grade(_gold(ground_truth), solution_str))


def _reward(found: Grade) -> float:
    return RIGHT if found.verdict is Verdict.CORRECT else WRONG


def _gold(given: object) -> object:
    if isinstance(given, list | tuple):
        return [_gold(entry) for entry in given]
    if isinstance(given, str) and any(mark in given for mark in _STATED):
        return shared_checker().stated_answer(given) or given
    return given


def _said(completion: object) -> object:
    """The text of a completion, None where the assistant said none."""
    if isinstance(completion, Mapping):
        completion = [completion]
    if isinstance(completion, str) or not isinstance(completion, Sequence):
        return completion
    for message in reversed(completion):
        if isinstance(message, Mapping) and message.get("role", "assistant") == "assistant":
            return _content(message.get("content"))
    return None


def _content(content: object) -> object:
    if isinstance(content, str) or not isinstance(content, Sequence):
        return content
    texts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))
