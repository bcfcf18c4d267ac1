"""Reward functions for RL trainers: 1.0 if the final answer is correct, 0.0 if it is incorrect or missing.

`accuracy_reward` is a reward function for TRL's GRPO and RLOO trainers. `compute_score` is one for verl, which can also load it
by the path of this file. Both use the default settings of the checker, except `grader.unreadable_is=wrong`, because a policy in
training could learn to state what nobody can read. Both work in any thread, process or Ray actor.

An answer that cannot be graded (its gold cannot be read, or its comparison is late or crashes) is not incorrect. TRL gets None
for it and ignores this reward function for that sample. If it is the only reward function, the sample has no advantage and is
left out of its group's mean (before TRL's pull request 5902 it counted as 0.0). verl has no such value and gets 0.0.
Not covered: outputs that a token limit cut, because trainers do not report that; and other checker settings. For those, write a
reward function that calls `grade`.
"""

from collections.abc import Callable, Mapping, Sequence

from pipeline.config.choices import UnreadableIs
from pipeline.core.records import UNGRADED, Verdict
from pipeline.graders.settings import MathConfig
from pipeline.graders.shared import grade, shared_checker

_SETTINGS = MathConfig(unreadable_is=UnreadableIs.wrong)
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
    """One reward per completion: 1.0 if it is correct, 0.0 if it is incorrect or has no answer, None if it cannot be graded.

    A completion is a text or a list of messages. Of a list, the last message by the assistant is graded; its content is a text
    or a list of parts. The golds are the data set's column `answer`, else `ground_truth`, else `solution`. They are texts,
    numbers, or lists of these. If a gold text contains `\\boxed{}` or `####`, the answer stated there is the gold. With
    `log_extra`, verdicts and answers are added to the trainer's completions table. With `log_metric`, the share of ungraded
    completions is logged as `ungraded`. Raises ValueError if the data set has none of the columns, or one of another length.
    """
    golds = next((column for column in (answer, ground_truth, solution) if column is not None), None)
    if golds is None:
        raise ValueError("accuracy_reward needs a column `answer`, `ground_truth` or `solution` in the data set")
    if len(golds) != len(completions):
        raise ValueError(f"accuracy_reward got {len(completions)} completions, but {len(golds)} known answers")
    pairs = zip(golds, completions, strict=True)
    grades = [grade(_gold(gold), _said(completion), config=_SETTINGS) for gold, completion in pairs]
    if log_extra is not None:
        log_extra("verdict", [found.verdict.value for found in grades])
        log_extra("extracted_answer", [found.answer for found in grades])
    if log_metric is not None and grades:
        log_metric("ungraded", sum(found.verdict in UNGRADED for found in grades) / len(grades))
    return [None if found.verdict in UNGRADED else float(found.verdict is Verdict.CORRECT) for found in grades]


def compute_score(
    data_source: str, solution_str: str, ground_truth: object, extra_info: object = None, **_more: object
) -> float:
    """verl's reward of one output: 1.0 if it is correct, else 0.0, also if it cannot be graded.

    `ground_truth` is a text, a number, or a list of these, any of which is correct. If a text contains `\\boxed{}` or `####`,
    the answer stated there is the gold. `data_source` and `extra_info` are ignored. Raises ValueError if `ground_truth` is a
    mapping.
    """
    if isinstance(ground_truth, Mapping):
        raise ValueError(
            "compute_score needs the known answer itself as ground_truth,"
            f" not a mapping with {', '.join(map(str, ground_truth))}: put it into the data set's reward_model.ground_truth"
        )
    return float(grade(_gold(ground_truth), solution_str, config=_SETTINGS).verdict is Verdict.CORRECT)


def _gold(given: object) -> object:
    if isinstance(given, list | tuple):
        return [_gold(entry) for entry in given]
    if isinstance(given, str) and any(mark in given for mark in _STATED):
        return shared_checker(_SETTINGS).stated_answer(given) or given
    return given


def _said(completion: object) -> object:
    """The text of a completion, or None if it has no message by the assistant."""
    if isinstance(completion, Mapping):
        completion = [completion]
    if isinstance(completion, str) or not isinstance(completion, Sequence):
        return completion
    said = [each for each in completion if isinstance(each, Mapping) and each.get("role", "assistant") == "assistant"]
    content = said[-1].get("content") if said else None
    if isinstance(content, str) or not isinstance(content, Sequence):
        return content
    texts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))
