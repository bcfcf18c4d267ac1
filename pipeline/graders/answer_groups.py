"""Groups final answers that are equal, for votes. Pure."""

from collections.abc import Sequence

from pipeline.core.records import Verdict
from pipeline.graders.math.compare import quick_verdict
from pipeline.graders.math.normal import normal_form


def answer_groups(answers: Sequence[str | None]) -> list[int | None]:
    """A number for every answer, the same for equal answers; None for no answer.

    Two answers are equal if the checker finds them equal without algebra, with either one as the known answer, or if both are
    equal to a third.
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
