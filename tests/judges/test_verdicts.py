r"""What texts of judges say: the last index in a box, or words about steps; nothing raises, and nothing takes long."""

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import Finish, Reading, ReadingKind, StepOpinion
from pipeline.judges.base import Judge, wrong_reading
from pipeline.judges.registry import judge_for
from pipeline.judges.settings import JudgeParser, JudgeTemplate, ModelJudgeConfig
from tests.strategies import texts

pytestmark = pytest.mark.slow

GOOD, OK, BAD = StepOpinion.GOOD, StepOpinion.OK, StepOpinion.BAD
FORMS: list[tuple[JudgeTemplate, JudgeParser | None]] = [
    *((each, None) for each in JudgeTemplate if each is not JudgeTemplate.own),
    *((JudgeTemplate.own, each) for each in JudgeParser),
]
HOSTILE_TEXTS = 10_000
PIECES = (
    *("\ud800", "\udfff\ud83d", "GOOD", "BAD", "\nStep 0:", "<step_1>", "none", "\\boxed{2}", "\\boxed{BAD}"),
    *("\\boxed{", "\\boxed", "{", "}", "}}", "\\text{", "correct", "incorrect", "Yes", "No", "-1", "0", "1", "2", "7"),
    *(
        "\nStep 1:",
        "\nStep 2:",
        "Step 99999999999",
        "\n### Step 1",
        "\\fbox{",
        "\\boxed{\\boxed{",
        "{" * 300,
        "}" * 300,
    ),
    *("\\", "$", "**", "\n", " ", "\x00", "\u2212", "\u202e", "é" * 50, "<analyze>", "</analyze>\n", "</think>", "١"),
    *("__import__('os').system('id')", "%s%n", "{0.__class__}", "\ud83d\ude00", "9" * 500, "\\boxed{" * 50),
)
"""Parts of texts that a reader of verdicts may stumble over."""


def judge(template: JudgeTemplate, parser: JudgeParser | None, base: int | None) -> Judge:
    file = None if parser is None else "nowhere.txt"
    return judge_for(ModelJudgeConfig(name="x", template=template, parser=parser, template_file=file, index_base=base))


def read(
    text: str,
    steps: int = 3,
    template: JudgeTemplate = JudgeTemplate.process_bench,
    parser: JudgeParser | None = None,
    finish: Finish = Finish.STOP,
    base: int | None = None,
) -> Reading:
    base = 0 if parser is not None and base is None else base
    found = judge(template, parser, base).read([text], finish, steps)
    assert not wrong_reading(found, steps)
    return found


def error(first: int, *steps: StepOpinion | None) -> Reading:
    return Reading(kind=ReadingKind.ERROR, first_error=first, steps=steps)


@given(texts, st.integers(1, 12), st.integers(0, 1), st.data())
def test_the_last_index_counts_in_either_base(before: str, steps: int, base: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, steps))
    text = f"{before} \\boxed{{-1}}, no: \\boxed{{{first - 1 + base}}} and $\\boxed{{x}}$."
    assert read(text, steps, base=base) == error(first)
    assert read(f"{text} \\boxed{{\\text{{-1}}}}", steps, base=base).kind is ReadingKind.NO_ERROR


@pytest.mark.parametrize(
    ("text", "base", "kind"),
    [
        ("\\boxed{0}", 1, ReadingKind.OUT_OF_RANGE),
        ("\\boxed{6}", 0, ReadingKind.OUT_OF_RANGE),
        ("\\boxed{3}", 0, ReadingKind.OUT_OF_RANGE),
        ("\\boxed{-2}", 0, ReadingKind.OUT_OF_RANGE),
        ("\\boxed{4}", 1, ReadingKind.OUT_OF_RANGE),
        ("\\boxed{3}", 1, ReadingKind.ERROR),
        ("\\boxed{-1}", 1, ReadingKind.NO_ERROR),
        ("It is in paragraph 1.", 0, ReadingKind.UNPARSEABLE),
        ("1", 0, ReadingKind.ERROR),
        (" **Paragraph 1** ", 0, ReadingKind.ERROR),
        ("-1", 0, ReadingKind.NO_ERROR),
        ("7", 0, ReadingKind.OUT_OF_RANGE),
        ("1 or 2", 0, ReadingKind.UNPARSEABLE),
        ("Paragraph " + " " * 80 + "1", 0, ReadingKind.UNPARSEABLE),
        ("\\boxed{1", 0, ReadingKind.UNPARSEABLE),
        ("\\boxed{1}, no, \\boxed{none}", 0, ReadingKind.ERROR),
        ("", 0, ReadingKind.UNPARSEABLE),
        *((f"\\boxed{{{says}}}", 0, ReadingKind.ERROR) for says in ("paragraph_1", "step 1", " 1 ")),
        *((f"\\boxed{{{says}}}", 0, ReadingKind.UNPARSEABLE) for says in ("one", "1.5", "1, 2", r"\text{Paragraph }1")),
    ],
)
def test_an_index_outside_the_chain_is_no_verdict(text: str, base: int, kind: ReadingKind) -> None:
    assert read(text, 3, base=base).kind is kind


def test_what_was_not_written_or_cut_says_so() -> None:
    for template, parser in FORMS:
        for finish, kind in (
            (Finish.TOO_LONG, ReadingKind.TOO_LONG),
            (Finish.ENGINE_FAILED, ReadingKind.FAILED),
            (Finish.ABORT, ReadingKind.FAILED),
            (Finish.LENGTH, ReadingKind.CUT),
            (Finish.STOP, ReadingKind.UNPARSEABLE),
        ):
            assert judge(template, parser, 1).read((), finish, 3) == Reading(kind=kind)
    cut = Finish.LENGTH
    assert read("It is \\boxed{1}, or", finish=cut) == Reading(kind=ReadingKind.CUT)
    words = {"template": JudgeTemplate.think_prm, "finish": cut}
    good = read("Step 1: \\boxed{correct}\nStep 2: but", **words)  # type: ignore[arg-type]
    assert good == Reading(kind=ReadingKind.CUT, steps=(GOOD, None, None))
    bad = read("Step 1: \\boxed{correct}\nStep 2: \\boxed{incorrect}\nStep 3: but", **words)  # type: ignore[arg-type]
    assert bad == error(2, GOOD, BAD, None)


def test_words_belong_to_the_steps_that_headings_name() -> None:
    text = (
        "Step 0: It adds. \\boxed{GOOD}\n**Step 1:** It repeats.\n\\boxed{OK}\n<step_2> It is false: \\boxed{\\text{OK}}? No. "
        "\\boxed{BAD}\n"
    )
    form = JudgeTemplate.good_ok_bad
    assert read(text, 4, form) == error(3, GOOD, OK, BAD, None)
    assert read(text.replace("BAD", "ok"), 3, form) == Reading(kind=ReadingKind.NO_ERROR, steps=(GOOD, OK, OK))
    assert read(text.replace("BAD", "ok"), 4, form).kind is ReadingKind.UNPARSEABLE
    assert read(text, 2, form) == Reading(kind=ReadingKind.OUT_OF_RANGE, steps=(GOOD, OK))
    assert read("Step 0: GOOD\nStep 1: BAD, as 2 + 1 = 3.", 2, form) == error(2, GOOD, BAD)
    assert read("\\boxed{good} \\boxed{bad}", 3, form) == error(2, GOOD, BAD, None)
    assert read("\\boxed{good} " * 4, 3, form).kind is ReadingKind.UNPARSEABLE


def test_the_first_bad_step_counts_even_after_one_that_is_skipped() -> None:
    text = "Step 1: \\boxed{correct}\nStep 3: \\boxed{incorrect}"
    assert read(text, template=JudgeTemplate.think_prm) == error(3, GOOD, None, BAD)
    corrected = "Step 1: \\boxed{incorrect} again\nStep 1: \\boxed{\\text{correct}}"
    assert read(corrected, 1, JudgeTemplate.think_prm).kind is ReadingKind.NO_ERROR


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("First error: 2", error(2)),
        ("**2**", error(2)),
        ("Step 2.", error(2)),
        ("-1", Reading(kind=ReadingKind.NO_ERROR)),
        ("The answer is \u22121.", Reading(kind=ReadingKind.NO_ERROR)),
        ("None", Reading(kind=ReadingKind.NO_ERROR)),
        ("There are no errors.", Reading(kind=ReadingKind.NO_ERROR)),
        ("0", Reading(kind=ReadingKind.OUT_OF_RANGE)),
        ("6", Reading(kind=ReadingKind.OUT_OF_RANGE)),
        ("2 or 3", Reading(kind=ReadingKind.UNPARSEABLE)),
        ("2.5", Reading(kind=ReadingKind.UNPARSEABLE)),
        ("9" * 5000, Reading(kind=ReadingKind.UNPARSEABLE)),
        ("I cannot say.", Reading(kind=ReadingKind.UNPARSEABLE)),
    ],
)
def test_the_only_number_of_the_last_line_is_an_index(line: str, wanted: Reading) -> None:
    found = read(
        f"Step 1 is fine.\n\n{line}\n \n", parser=JudgeParser.last_line_index, template=JudgeTemplate.own, base=1
    )
    assert found == wanted


def test_lines_may_hold_words_without_boxes() -> None:
    text = "Step 1: correct\n- Step 2 - **Incorrect**: 2 + 1 is 3.\nStep 3: I cannot say\nstep 2 is wrong"
    form = {"template": JudgeTemplate.own, "parser": JudgeParser.line_words, "base": 1}
    assert read(text, **form) == error(2, GOOD, BAD, None)  # type: ignore[arg-type]
    assert read("Step 1: yes\nStep 2: ok\nStep 3: good", **form).kind is ReadingKind.NO_ERROR  # type: ignore[arg-type]


def test_ten_thousand_hostile_texts_raise_nothing() -> None:
    draw = random.Random(1)
    finishes = list(Finish)
    for number in range(HOSTILE_TEXTS):
        text = "".join(draw.choices(PIECES, k=draw.randrange(40)))
        template, parser = FORMS[number % len(FORMS)]
        read(text, draw.randrange(1, 5), template, parser, draw.choice(finishes))


@given(st.text(max_size=300) | texts, st.sampled_from(FORMS), st.sampled_from(list(Finish)), st.integers(0, 5))
def test_any_text_has_a_reading(
    text: str, form: tuple[JudgeTemplate, JudgeParser | None], finish: Finish, steps: int
) -> None:
    found = read(text, steps, *form, finish)
    assert found.steps == () or len(found.steps) == steps


@pytest.mark.parametrize(
    "piece",
    [
        "\\boxed{",
        "\\boxed{\\text{",
        "\nStep 1",
        "\nStep 1: ",
        "\n<step_",
        "\\boxed{1",
        "}",
        "\n" + " " * 20,
        "1",
        "1 ",
        "1.",
        "none ",
    ],
)
def test_a_long_text_of_the_same_piece_is_read_to_its_end(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    # A reader that begins again at every piece would not end before the time limit of tests.
    for (template, parser), end in product(FORMS, ("", "\n")):
        found = read(text + end, 3, template, parser)
        assert found == Reading(kind=ReadingKind.UNPARSEABLE) or parser is JudgeParser.last_line_index
