"""A template of the user's own: its fields, its parser, and what is wrong with a file."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from pipeline.core.errors import UsageError
from pipeline.core.records import Finish, ReadingKind
from pipeline.judges.registry import judge_for
from pipeline.judges.settings import JudgeParser, ModelJudgeConfig
from pipeline.judges.templates.own import MOST_BYTES
from tests.judges.scripted import PROBLEM, STEPS, Scripted, always, chain, criticised
from tests.strategies import texts

TEMPLATE = (
    "Problem: {problem}\n\n{steps}\n\nWhich step is wrong? Write \\boxed{K}, \\boxed{-1}, or $\\frac{a}{b}$ in {}."
)


def own(file: Path, **more: Any) -> dict[str, Any]:
    return {"template_file": str(file), "parser": JudgeParser.boxed_index, "index_base": 1, **more}


def test_the_fields_are_filled_and_other_braces_stay(tmp_path: Path) -> None:
    file = tmp_path / "judge.txt"
    file.write_text("\ufeff" + TEMPLATE, encoding="utf-8")
    engine = Scripted(always("\\boxed{2}"))
    ((critique,),) = criticised(engine, **own(file))
    steps = "\n".join(f"Step {number}: {step}" for number, step in enumerate(STEPS, start=1))
    wanted = TEMPLATE.replace("{problem}", PROBLEM).replace("{steps}", steps)
    assert engine.prompts == [f"user: {wanted}\nassistant: "]
    assert critique.reading.first_error == 2


def test_each_parser_reads_its_form(tmp_path: Path) -> None:
    file = tmp_path / "judge.txt"
    file.write_text("{problem}\n{tagged_steps}")
    answers = {
        JudgeParser.boxed_index: "\\boxed{1}",
        JudgeParser.boxed_words: "Step 0: \\boxed{yes}\nStep 1: \\boxed{no}",
        JudgeParser.line_words: "Step 0: good\nStep 1: bad",
        JudgeParser.last_line_index: "So the first error is in step\n1",
    }
    for parser in JudgeParser:
        engine = Scripted(always(answers[parser]))
        ((critique,),) = criticised(engine, **own(file, parser=parser, index_base=0))
        assert critique.reading.first_error == 2
        assert f"<step_0>\n{STEPS[0]}\n</step_0>" in engine.prompts[0]


@given(texts, texts)
def test_chains_that_look_like_fields_stay_texts(
    tmp_path_factory: pytest.TempPathFactory, problem: str, step: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "fields.txt"
    file.write_text("<<{problem}>>{steps}")
    problem, step = problem + "{steps}{answer}", step + "{problem}"
    engine = Scripted(always("\\boxed{-1}"))
    ((critique,),) = criticised(engine, chain(0, step, problem=problem), **own(file))
    assert engine.prompts == [f"user: <<{problem}>>Step 1: {step}\nassistant: "]
    assert critique.reading.kind is ReadingKind.NO_ERROR


def test_the_answer_is_a_field_where_it_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "judge.txt"
    file.write_text("{problem} {steps} ({answer})")
    engine = Scripted(always("\\boxed{-1}"))
    criticised(engine, chain(golds=["3"]), **own(file, show_answer=True))
    assert engine.prompts[0].endswith(" (3)\nassistant: ")
    with pytest.raises(UsageError, match=r"judge\.txt shows the known answer: set judge\.show_answer=true"):
        criticised(always(""), **own(file))
    file.write_text("{problem} {steps}")
    with pytest.raises(UsageError, match=r"has no \{answer\}"):
        criticised(always(""), **own(file, show_answer=True))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{steps}", "has no {problem}: write it where"),
        ("{problem}", "has no {steps} and no {tagged_steps}"),
        ("", "has no {problem}"),
        (
            "{problem}\n\n{steps} {solution}",
            "line 3: {solution} is no field: use {problem}, {steps}, {tagged_steps}, {answer}",
        ),
        (b"{problem} {steps} \xff", "is not UTF-8 (at byte 18): save it as UTF-8"),
        ("{problem} {steps}" + "x" * MOST_BYTES, "has more than 262,144 bytes"),
    ],
)
def test_a_file_that_is_no_template_is_refused_before_anything_is_loaded(
    content: str | bytes, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "judge.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    judge = judge_for(ModelJudgeConfig(name="x", **own(file)))
    with pytest.raises(UsageError, match=r"^[^\n]*$") as error:
        judge.identity()
    assert f"judge.template_file={file}" in str(error.value)
    assert said in str(error.value)

    class Unloaded(Scripted):
        async def start(self) -> None:
            raise AssertionError("a model was loaded")

    with pytest.raises(UsageError):
        criticised(Unloaded(always("")), **own(file))


@pytest.mark.parametrize("name", ["missing.txt", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        judge_for(ModelJudgeConfig(name="x", **own(tmp_path / name))).identity()


def test_the_identity_is_the_text_and_reading_needs_no_file(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt")]
    for file, text in zip(files, (TEMPLATE, TEMPLATE, TEMPLATE + "!"), strict=True):
        file.write_text(text)
    judges = [judge_for(ModelJudgeConfig(name="x", **own(file))) for file in files]
    first, same, other = (judge.identity() for judge in judges)
    assert first == same != other
    assert judge_for(ModelJudgeConfig(name="x")).identity() == {}
    files[0].unlink()
    judge = judge_for(ModelJudgeConfig(name="x", **own(files[0])))
    assert judge.read(["\\boxed{2}"], Finish.STOP, 3).first_error == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"parser": None}, "judge.template_file needs judge.parser, which says how verdicts are read: boxed_index"),
        ({"index_base": None}, "judge.template_file needs judge.index_base"),
        ({"template_file": None, "parser": JudgeParser.boxed_index}, "judge.parser has no effect with"),
    ],
)
def test_a_template_of_your_own_says_how_it_is_read(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as error:
        ModelJudgeConfig(name="x", **own(Path("x.txt"), **more))
    assert said in str(error.value)
