"""Settings of the judges. Pure: this module loads no library."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, ClassVar

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, Settings, refuse_equal
from pipeline.config.judge import JudgeConfig


class JudgeTemplate(Enum):
    """How a chain is put to a judge, and in which form it answers."""

    process_bench = "process_bench"
    """The critique prompt of ProcessBench, for any chat model: the index of the first wrong paragraph."""
    good_ok_bad = "good_ok_bad"
    """GOOD, OK or BAD for each step, as VersaPRM defines them, for any chat model."""
    think_prm = "think_prm"
    """ThinkPRM: a verdict on every step, in one critique."""
    gen_prm = "gen_prm"
    """GenPRM: a turn with an analysis and a judgement for every step. Its code is not run."""
    own = "own"
    """The text of judge.template_file."""


class JudgeParser(Enum):
    """How the verdict is read from the answer to a template of your own."""

    boxed_index = "boxed_index"
    """The number of the first wrong step in `\\boxed{}`, or -1."""
    boxed_words = "boxed_words"
    """A word in `\\boxed{}` for each step: correct, yes, good or ok; incorrect, no or bad."""
    line_words = "line_words"
    """A line for each step, which begins with `Step K:` and one of these words."""
    last_line_index = "last_line_index"
    """The number of the first wrong step, -1 or none, on the last line."""


@dataclass(kw_only=True, slots=True)
class ModelJudgeConfig(JudgeConfig):
    """A model that writes critiques. The model is the policy of the command: any chat model, ThinkPRM or GenPRM."""

    kind: Annotated[str, BY_GROUP] = "model"
    template: JudgeTemplate | None = None
    """The prompt, and the form of the verdicts. null: own with a judge.template_file, else process_bench."""
    template_file: str | None = None
    """The file of a template of your own, with the fields {problem}, {steps} or {tagged_steps}, and {answer} where the judge
    sees the known answer."""
    parser: JudgeParser | None = None
    """How verdicts are read from the answers to judge.template_file."""
    index_base: Annotated[int | None, Range(ge=0, le=1)] = None
    """The number of the first step in prompts and answers. null: that of the template: 0 for process_bench and good_ok_bad, 1
    for think_prm and gen_prm. A template of your own must say."""
    temperature: Annotated[float | None, Ge(0)] = None
    """Sampling temperature. null: 0 for one vote; for several as the template is published (1.0 process_bench, 0.7 think_prm,
    0.6 gen_prm), and 1.0 for the others."""
    top_p: Annotated[float | None, Range(gt=0, le=1)] = None
    """Only the most likely tokens that together have this probability are sampled. null: as the template is published."""
    top_k: Annotated[int | None, Ge(0)] = None
    """Only this number of most likely tokens is sampled from; 0: all tokens. null: as the template is published (20 for
    gen_prm, else 0)."""
    max_tokens: Annotated[int, Ge(1)] = 4096
    """Longest critique in tokens. One that is cut before its verdict says nothing."""

    @property
    def chosen_template(self) -> JudgeTemplate:
        """The template, also where `template` is null."""
        if self.template is not None:
            return self.template
        return JudgeTemplate.process_bench if self.template_file is None else JudgeTemplate.own

    def check(self) -> None:
        JudgeConfig.check(self)
        own = self.chosen_template is JudgeTemplate.own
        if own and self.template_file is None:
            raise ValueError("judge.template=own needs the text: give judge.template_file=FILE")
        if not own and self.template_file is not None:
            raise ValueError(
                f"judge.template_file has no effect with judge.template={self.chosen_template.value}: leave one of them out"
            )
        if not own and self.parser is not None:
            raise ValueError(
                f"judge.parser has no effect with judge.template={self.chosen_template.value}, which has an answer form of "
                "its own: leave it out, or give judge.template_file=FILE"
            )
        if own and self.parser is None:
            choices = ", ".join(each.value for each in JudgeParser)
            raise ValueError(f"judge.template_file needs judge.parser, which says how verdicts are read: {choices}")
        if own and self.index_base is None:
            raise ValueError(
                "judge.template_file needs judge.index_base, the number of the first step in its prompts and answers: 0 or 1"
            )
        if self.show_answer and self.chosen_template in _WITHOUT_ANSWER:
            raise ValueError(
                f"judge.show_answer=true: judge.template={self.chosen_template.value} has no place for the known answer: take "
                "judge.template=good_ok_bad or a judge.template_file with {answer}, or leave judge.show_answer out"
            )
        refuse_equal("judge.votes", self.votes, "votes", self.temperature, "judge.temperature")


_WITHOUT_ANSWER = (JudgeTemplate.process_bench, JudgeTemplate.think_prm, JudgeTemplate.gen_prm)


@dataclass(kw_only=True, slots=True)
class OracleVotes(Settings):
    """What the oracle votes."""

    SECTION: ClassVar[str] = "judge.oracle"
    seed: int = 0
    """Seed of the true values and of the votes. With that of `policy.oracle`, the chains of a run have the values of its
    prefixes."""


@dataclass(kw_only=True, slots=True)
class OracleJudgeConfig(JudgeConfig):
    kind: Annotated[str, BY_GROUP] = "oracle"
    oracle: OracleVotes = field(default_factory=OracleVotes)
