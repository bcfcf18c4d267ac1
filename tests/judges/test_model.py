r"""`judge=model`: each template's prompt, critiques and verdicts; votes; chains that do not fit; settings that exclude each
other."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config.label import SamplingConfig
from pipeline.core.errors import EngineDied, PolicyError, UsageError, said
from pipeline.core.records import Finish, Reading, ReadingKind, StepOpinion
from pipeline.engines.base import Surroundings
from pipeline.engines.hugging_face import HfTokenizer
from pipeline.engines.oracle import OraclePolicyConfig
from pipeline.engines.registry import open_engine
from pipeline.judges.registry import judge_for, open_judge
from pipeline.judges.settings import JudgeTemplate, ModelJudgeConfig
from pipeline.judges.templates import good_ok_bad
from tests.judges.scripted import PROBLEM, STEPS, Scripted, always, chain, criticised
from tests.oracles.lab import LabPolicyConfig, LabRollouts

GOOD, OK, BAD = StepOpinion.GOOD, StepOpinion.OK, StepOpinion.BAD
BUILT_IN = [each for each in JudgeTemplate if each is not JudgeTemplate.own]


def gen_prm(prompt: str, vote: int) -> str:
    """Finds the wrong step of the chain."""
    if prompt.endswith("\\boxed"):
        return "{No}$\n</output>\n" if STEPS[1] in prompt.rpartition("user: ")[2] else "{Yes}$\n</output>\n"
    return "I add.\n</analyze>\n"


ANSWERS = {
    JudgeTemplate.process_bench: always("Two and one are three: \\boxed{1}"),
    JudgeTemplate.good_ok_bad: always("Step 0: \\boxed{OK}\nStep 1: \\boxed{BAD}"),
    JudgeTemplate.think_prm: always("\nStep 1: \\boxed{correct}\nStep 2: \\boxed{incorrect}\n"),
    JudgeTemplate.gen_prm: gen_prm,
}


@pytest.mark.parametrize("template", BUILT_IN)
def test_a_template_finds_the_first_error_and_what_it_wrote_is_read_again_alike(template: JudgeTemplate) -> None:
    engine = Scripted(ANSWERS[template])
    (critiques,) = criticised(engine, template=template, votes=3)
    judge = judge_for(ModelJudgeConfig(name="x", template=template))
    for critique in critiques:
        assert (critique.reading.kind, critique.reading.first_error) == (ReadingKind.ERROR, 2)
        assert judge.read(critique.turns, critique.finish, len(STEPS)) == critique.reading
        assert critique.n_tokens > 0
    read = sum(each.n_prompt_tokens for each in critiques)
    assert read == sum(map(len, engine.prompts))
    assert all(PROBLEM in prompt and STEPS[0] in prompt for prompt in engine.prompts)


def test_the_words_of_each_step_are_kept() -> None:
    found = [criticised(ANSWERS[template], template=template)[0][0].reading.steps for template in BUILT_IN]
    assert found == [(), (OK, BAD, None), (GOOD, BAD, None), (GOOD, BAD, GOOD)]


def test_the_prompt_of_good_ok_bad_defines_the_words_and_states_its_index_base() -> None:
    engine = Scripted(ANSWERS[JudgeTemplate.good_ok_bad])
    criticised(engine, template=JudgeTemplate.good_ok_bad)
    (prompt,) = engine.prompts
    assert "GOOD: " in prompt and "OK: " in prompt and "BAD: " in prompt  # noqa: PT018
    assert "indexed from 0" in prompt
    assert f"[Solution]\n\n<step_0>\n{STEPS[0]}\n</step_0>\n\n<step_1>\n{STEPS[1]}\n</step_1>" in prompt
    assert "Step 0: \\boxed{GOOD}" in prompt
    assert "which is step 2." in prompt
    (_, user) = good_ok_bad.critique_messages(PROBLEM, STEPS, 1, None)
    assert "numbered from 1" in user["content"]
    assert "<step_3>" in user["content"]


def test_the_known_answer_is_shown_only_where_it_is_asked_for() -> None:
    for shows in (False, True):
        engine = Scripted(ANSWERS[JudgeTemplate.good_ok_bad])
        asked = chain(golds=["3001", "3001.0"])
        criticised(engine, asked, template=JudgeTemplate.good_ok_bad, show_answer=shows)
        assert ("3001" in engine.prompts[0]) is shows
        assert ("[Known Answer]\n\n3001 or 3001.0\n" in engine.prompts[0]) is shows
        assert ("contradicts the known answer" in engine.prompts[0]) is shows
    for template in set(BUILT_IN) - {JudgeTemplate.good_ok_bad}:
        with pytest.raises(ValueError, match="has no place for the known answer"):
            ModelJudgeConfig(name="x", template=template, show_answer=True)


def test_each_vote_has_a_reading_of_its_own() -> None:
    says = ["\\boxed{1}", "\\boxed{-1}", "\\boxed{5}", "", "I do not know."]
    (found,) = criticised(lambda prompt, vote: says[vote], votes=5)
    assert [each.reading.kind for each in found] == [
        ReadingKind.ERROR,
        ReadingKind.NO_ERROR,
        ReadingKind.OUT_OF_RANGE,
        ReadingKind.FAILED,
        ReadingKind.UNPARSEABLE,
    ]
    assert [each.turns for each in found] == [(text,) for text in says]


@pytest.mark.parametrize("template", BUILT_IN)
def test_a_chain_beyond_the_context_is_never_asked_about(template: JudgeTemplate) -> None:
    long = chain(1, *["3 + 4 = 7. " * 9] * 30)
    engine = Scripted(ANSWERS[template], max_model_len=2500)
    (found, short) = criticised(engine, long, chain(), template=template, votes=2)
    assert [(each.turns, each.finish) for each in found] == [((), Finish.TOO_LONG)] * 2
    assert {each.reading for each in found} == {Reading(kind=ReadingKind.TOO_LONG)}
    assert not any("3 + 4" in prompt for prompt in engine.prompts)
    assert {each.reading.kind for each in short} == {ReadingKind.ERROR}


def test_a_conversation_that_grows_beyond_the_context_keeps_the_verdicts_before() -> None:
    def wordy(prompt: str, vote: int) -> str:
        return gen_prm(prompt, vote).replace("I add.", "I add. " * 90)

    engine = Scripted(wordy, max_model_len=1600)
    many = chain(1, STEPS[0], STEPS[0], STEPS[1])
    ((critique,),) = criticised(engine, many, template=JudgeTemplate.gen_prm)
    assert critique.finish is Finish.TOO_LONG
    assert 0 < len(critique.turns) < 3
    assert critique.reading.kind is ReadingKind.TOO_LONG
    assert critique.reading.steps[0] is GOOD
    ((critique,),) = criticised(Scripted(wordy, max_model_len=1750), chain(), template=JudgeTemplate.gen_prm)
    assert critique.reading.first_error == 2


def test_a_critique_that_the_limit_cuts_is_counted_as_cut() -> None:
    engine = Scripted(always("Perhaps \\boxed{-1}, but"), finish=Finish.LENGTH)
    ((critique,),) = criticised(engine)
    assert critique.reading == Reading(kind=ReadingKind.CUT)
    assert critique.finish is Finish.LENGTH


def test_many_chains_are_judged_at_once_and_equal_ones_too() -> None:
    chains = [chain(number, "It is so.", "Done.", problem=f"{number % 3} + 0?") for number in range(30)]
    found = criticised(lambda prompt, vote: f"\\boxed{{{prompt.partition('Problem]')[2].strip()[0]}}}", *chains)
    firsts = [critique.reading.first_error for (critique,) in found]
    assert firsts == [[1, 2, None][number % 3] for number in range(30)]


def test_one_vote_is_greedy_and_several_are_sampled_as_published() -> None:
    def sampled(**own: Any) -> tuple[float, float, int]:
        found = judge_for(ModelJudgeConfig(name="x", **own)).sampling()
        return found.temperature, found.top_p, found.top_k

    assert sampled(votes=1) == (0.0, 1.0, 0)
    assert sampled() == (1.0, 0.9, 0)
    assert sampled(template=JudgeTemplate.good_ok_bad) == (1.0, 1.0, 0)
    assert sampled(template=JudgeTemplate.think_prm) == (0.7, 1.0, 0)
    assert sampled(template=JudgeTemplate.gen_prm) == (0.6, 0.95, 20)
    assert sampled(template=JudgeTemplate.gen_prm, temperature=0.2, top_p=0.5, top_k=0) == (0.2, 0.5, 0)
    stops = judge_for(ModelJudgeConfig(name="x", template=JudgeTemplate.think_prm, max_tokens=77)).sampling()
    assert (stops.max_tokens, stops.stop) == (77, ["Is the solution correct?"])


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"votes": 5, "temperature": 0.0}, "judge.votes=5 with judge.temperature=0 are equal votes"),
        ({"votes": 0}, "judge.votes=0 is out of range"),
        ({"index_base": 2}, "judge.index_base=2 is out of range"),
        ({"name": "../x"}, "judge.name='../x' is out of range"),
        ({"template": JudgeTemplate.own}, "judge.template=own needs the text: give judge.template_file=FILE"),
        ({"template": JudgeTemplate.gen_prm, "template_file": "x"}, "judge.template_file has no effect with"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(own: Any, said: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as error:
        ModelJudgeConfig(**{"name": "x", **own})
    assert said in str(error.value)


def test_a_judge_that_writes_needs_a_policy() -> None:
    with pytest.raises(UsageError, match=r"writes with a model: give policy\.model="):
        open_judge(ModelJudgeConfig(name="x"), None, Surroundings())


def test_a_policy_that_writes_no_critiques_gives_unparseable_ones() -> None:
    settings = ModelJudgeConfig(name="x", votes=3)

    async def work() -> None:
        engine = open_engine(OraclePolicyConfig(), SamplingConfig())
        judging = open_judge(settings, engine, Surroundings())
        await judging.start()
        assert judging.model == "oracle:seed=0:process_bench"
        for number in range(20):
            found = await judging.critiques(chain(number))
            assert {each.reading.kind for each in found} == {ReadingKind.UNPARSEABLE}

    asyncio.run(work())


def test_an_engine_that_leaves_out_a_completion_is_an_engine_that_died() -> None:
    async def work() -> None:
        engine = open_engine(LabPolicyConfig(lab=LabRollouts(wrong_after=1)), SamplingConfig())
        judging = open_judge(ModelJudgeConfig(name="x", votes=3), engine, Surroundings())
        for number in range(3):
            await judging.critiques(chain(number))

    with pytest.raises(EngineDied, match="the engine returned 2 of 3 completions"):
        asyncio.run(work())


def test_a_model_without_a_chat_template_is_reported_at_the_start() -> None:
    engine = Scripted(always(""))
    engine._tokenizer = HfTokenizer(SimpleNamespace(chat_template=None, get_added_vocab=dict))
    with pytest.raises(PolicyError, match=r"^this model has no chat template: give a chat model$"):
        criticised(engine)


def test_messages_of_the_policy_name_the_settings_of_the_judge() -> None:
    class Failing(Scripted):
        async def start(self) -> None:
            raise PolicyError(
                *said("it does not fit: lower {sampling.max_tokens}=4096 or raise {policy.max_model_len}")
            )

    with pytest.raises(PolicyError, match=r"lower judge\.max_tokens=4096 or raise policy\.max_model_len"):
        criticised(Failing(always("")))
