"""Golden rows of whole outputs: worked solutions as models write them, which state their answer in many ways, or not at all."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.graders.golden.rows import Row, row, some
from tests.graders.golden.stories import STORIES, Solution


def outputs(chance: random.Random) -> Iterator[Row]:
    """All rows of this module."""
    for place in range(60):
        make = STORIES[place % len(STORIES)]
        story = make(chance)
        endings = some(chance, _ENDINGS if story.good.thing else _TEX_ENDINGS, 2)
        right = [_text(chance, story.good, ending) for ending in endings]
        slips = [slip for slip in story.slips if slip.plain != story.good.plain]
        ending = chance.choice(_ENDINGS if story.good.thing else _TEX_ENDINGS)
        wrong = [_text(chance, chance.choice(slips), ending)] if slips else []
        yield row("solution", story.good.tex, right, wrong)
    for place in range(3 * len(_TURNS)):
        yield _turn(chance, _TURNS[place % len(_TURNS)])
    for place in range(2 * len(_SILENT)):
        yield _silent(chance, _SILENT[place % len(_SILENT)])


def _text(chance: random.Random, solved: Solution, ending: str) -> str:
    joint = chance.choice(("\n", "\n", "\n\n", " "))
    numbered = joint != " " and chance.randrange(4) == 0
    steps = [f"{place}. {step}" if numbered else step for place, step in enumerate(solved.steps, 1)]
    body = joint.join(steps)
    said = ending.replace("PLAIN", solved.plain).replace("TEX", solved.tex).replace("THING", solved.thing)
    return body + ("\n\n" if joint == "\n\n" else "\n") + said


# PLAIN, TEX and THING stand for the answer.
_TEX_ENDINGS = (
    "The answer is $\\boxed{TEX}$.", "Thus, the answer is \\boxed{TEX}.", "\\[\\boxed{TEX}\\]", "$$\\boxed{TEX}$$",
    "Therefore we get $\\boxed{ TEX }$", "Hence \\fbox{TEX}.", "The final answer is $TEX$.",
    "Final Answer: The final answer is $TEX$. I hope it is correct.", "So the answer is \\(TEX\\).",
    "**Answer:** $TEX$", "**Final Answer**\n\n\\[ \\boxed{TEX} \\]", "### Final answer\n$\\boxed{TEX}$",
    "Answer: $TEX$", "Answer: \\(TEX\\)", "#### $TEX$", "#### TEX", "<answer>$TEX$</answer>",
    "<answer>\\boxed{TEX}</answer>", "The answer is: $TEX$", "The correct answer is $\\boxed{TEX}$",
    "$\\boxed{\\boxed{TEX}}$", "$\\boxed {TEX}$", "ANSWER: $TEX$", "$\\boxed{TEX}$\n\nThis is what was asked for.",
    "The answer is $\\boxed{TEX}.$", "Our final answer is therefore $\\boxed{TEX}$.<|im_end|>", "The answer: $TEX$",
    "\\(\\boxed{TEX}\\)",
)  # fmt: skip
_ENDINGS = (
    *_TEX_ENDINGS,
    "The answer is PLAIN.",
    "The answer is PLAIN THING.",
    "#### PLAIN",
    "#### PLAIN THING",
    "Answer: PLAIN",
    "Answer: PLAIN THING",
    "Final answer: PLAIN",
    "So the final answer is PLAIN THING.",
    "**Answer: PLAIN**",
    "**The answer is PLAIN THING.**",
    "The answer is **PLAIN**.",
    "\\boxed{PLAIN \\text{ THING}}",
    "\\boxed{PLAIN} THING",
    "$\\boxed{\\text{PLAIN THING}}$",
    "The answer to the question is PLAIN.",
    "The answer should be PLAIN.",
    "<answer>PLAIN</answer>",
    "<answer> PLAIN THING </answer>",
    "The answer is: PLAIN",
    "The answer is therefore PLAIN.",
    "the answer is PLAIN",
    "A: PLAIN",
    "The answer is PLAIN, because that is the last sum.",
    "答案是PLAIN。",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An output with the numbers A and B, and which of them it gives as its answer."""

    text: str
    says_a: bool = False
    says_b: bool = False


_TURNS = (
    Turn(text="The answer is A. Wait, I forgot the last term. The answer is B.", says_b=True),
    Turn(text="\\boxed{A}\n\nLet me check this again: the sum was off by one. The new result is \\boxed{B}.", says_b=True),
    Turn(text="So we have \\boxed{A}. Hmm, that cannot be right. Doing it again gives \\boxed{B}.", says_b=True),
    Turn(text="#### A\nOn second thought, I missed a factor.\n#### B", says_b=True),
    Turn(text="<think>First try: the answer is A. No, it must be B.</think>\nThe answer is B.", says_b=True),
    Turn(text="<think>The answer is \\boxed{A}.</think>\nAll in all we get \\boxed{B}.", says_b=True),
    Turn(text="<think>\nIt looks like A.\n</think>\n\n**Answer:** B", says_b=True),
    Turn(text="<think>I get A at first, then B, so the answer is B. But let me see whether"),
    Turn(text="A first guess is A, but that ignores the fee. With it the answer is B.", says_b=True),
    Turn(text="The answer is either A or B."),
    Turn(text="The answer is A or B."),
    Turn(text="The answer is $A$ or $B$."),
    Turn(text="I am not sure: \\boxed{A} or \\boxed{B}."),
    Turn(text="\\boxed{A \\text{ or } B}"),
    Turn(text="Depending on how it is read, the answer is A or B."),
    Turn(text="#### A or B"),
    Turn(text="Answer: A or B"),
    Turn(text="<answer>A or B</answer>"),
    Turn(text="\\boxed{A, B}"),
    Turn(text="The answer is between A and B."),
    Turn(text="The answer is not A, it is B.", says_b=True),
    Turn(text="The answer is B, not A.", says_b=True),
    Turn(text="The answer is B rather than A.", says_b=True),
    Turn(text="Some would say A. The answer is B.", says_b=True),
    Turn(text="The answer cannot be A or B."),
    Turn(text="We know that A + 0 = A. Therefore the result is \\boxed{B}.", says_b=True),
    Turn(text="Step 1: A\nStep 2: B\nThe answer is B.", says_b=True),
    Turn(text="Example: \\boxed{A} would be a format. Now the solution.\nThe result is \\boxed{B}.", says_b=True),
    Turn(text="Q: How many? The answer is A.\n\nQ: And here? The answer is B.", says_b=True),
    Turn(text="The answer is A. Actually, it should be B.", says_b=True),
    Turn(text="\\boxed{A}. Wait, I made a mistake: it should be B.", says_b=True),
    Turn(text="x = A. y = B.\n\nThe problem asks for y, so the answer is \\boxed{B}.", says_b=True),
    Turn(text="The answer is \\boxed{B} (and A was a trap).", says_b=True),
    Turn(text="If the answer were A, the rest would be negative. So the answer is B.", says_b=True),
    Turn(text="The answer is more than A and less than B."),
    Turn(text="The answer is at least B."),
    Turn(text="**Answer:** B\n\n*Check:* A fails.", says_b=True),
    Turn(text="Answer 1: A\nAnswer 2: B\nFinal answer: B", says_b=True),
    Turn(text="My answer: B. (The key says A, I think that is a typo.)", says_b=True),
    Turn(text="$\\boxed{B}$\n\n(Here A was the number at the start.)", says_b=True),
)  # fmt: skip


def _turn(chance: random.Random, turn: Turn) -> Row:
    a = chance.randrange(11, 900)
    b = a + chance.randrange(2, 90)
    # Letters first become marks, so that no word is touched.
    text = _filled(turn.text, str(a), str(b))
    if chance.randrange(2):
        return row("turn", str(b), [text] if turn.says_b else [], [] if turn.says_b else [text])
    return row("turn", str(a), [text] if turn.says_a else [], [] if turn.says_a else [text])


def _filled(text: str, a: str, b: str) -> str:
    marks = []
    for place, mark in enumerate(text):
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
        alone = not before.isalnum() and not after.isalnum() and not (mark == "A" and text[place : place + 3] == "A f")
        marks.append(a if mark == "A" and alone else b if mark == "B" and alone else mark)
    return "".join(marks)


# N is the gold; none of these states it as the answer.
_SILENT = (
    "", "I cannot solve this.", "We start with the first equation and then",
    "Let x be the number of coins. Then x + 3 = N + 3, and so we", "The answer is", "The answer is:",
    "The answer is \\boxed{", "\\boxed{}", "####", "Answer:", "<answer></answer>", "The answer is unknown.",
    "The answer is not N.", "The answer is greater than N.", "The answer is the square of N.", "The answer is twice N.",
    "There are N cases. In none of them we can say more.", "<think>The answer is N.", "<think>\\boxed{N}",
    "The question asks about page N.", "In step N we see that nothing changes. We need more information.",
    "Problem N. Solution: see the book.", "\\boxed{N1}", "The answer is -N.", "The answer is N.5",
    "The answer is N%, no: it is 1.", "#### N7", "The answer is $N + 1$.", "\\boxed{N^2}", "\\boxed{\\frac{N}{2}}",
    "The answer is 1/N.", "\\boxed{N x}", "\\boxed{\\text{none}}", "N N N N N N N N", "The answer is $\\sqrt{N}$.",
)  # fmt: skip


def _silent(chance: random.Random, text: str) -> Row:
    n = str(chance.randrange(11, 9000))
    filled = "".join(
        n
        if mark == "N" and not text[max(place - 1, 0) : place].isalpha() and not text[place + 1 : place + 2].isalpha()
        else mark
        for place, mark in enumerate(text)
    )
    return row("silent", n, [], [filled])
