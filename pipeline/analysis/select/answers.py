"""Which candidates say the same. Pure."""

from collections.abc import Sequence

from pipeline.core.records import Verdict
from pipeline.graders.math.compare import quick_verdict
from pipeline.graders.math.normal import normal_form


def answer_groups(answers: Sequence[str | None]) -> list[int | None]:
    """A number for every answer, the same for equal ones; None for no answer.

    Equal is what the checker finds equal without algebra, read either way round, and what is equal to the same.
    """
    spelling = [None if answer is None or not answer.strip() else normal_form(answer) for answer in answers]
    distinct = sorted({text for text in spelling if text is not None})
    group = list(range(len(distinct)))
    for one in range(len(distinct)):
        for other in range(one):
            if group[one] != group[other] and _equal(distinct[one], distinct[other]):
                joined, left = sorted((group[one], group[other]))
                group = [joined if number == left else number for number in group]
    of = dict(zip(distinct, group, strict=True))
    return [None if text is None else of[text] for text in spelling]


def _equal(one: str, other: str) -> bool:
    return Verdict.CORRECT in (quick_verdict(one, other), quick_verdict(other, one))
