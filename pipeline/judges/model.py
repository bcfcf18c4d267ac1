"""A judge that is a model: the policy of the command writes critiques after one of the `templates`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.config.label import SamplingConfig
from pipeline.core.errors import UsageError, named
from pipeline.core.records import ChainText, Critique, Finish, Reading
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.hugging_face import NO_TEMPLATE
from pipeline.judges.base import Judge, JudgingEngine
from pipeline.judges.settings import JudgeTemplate, ModelJudgeConfig
from pipeline.judges.templates.base import Template, Writer, WrittenCritique
from pipeline.judges.templates.gen_prm import GenPrm
from pipeline.judges.templates.good_ok_bad import GoodOkBad
from pipeline.judges.templates.own import Own
from pipeline.judges.templates.process_bench import ProcessBench
from pipeline.judges.templates.think_prm import ThinkPrm

PUBLISHED: Mapping[str, type[Template]] = {"process_bench": ProcessBench, "think_prm": ThinkPrm, "gen_prm": GenPrm}
"""The templates that others have published, by the names that settings have for them; `scorer=generative` has them too."""
_NAMES: Mapping[str, str] = {NO_TEMPLATE: "give a chat model", "sampling.max_tokens": "judge.max_tokens"}
"""What errors of a policy say here."""


class ModelJudge(Judge):
    """See the module."""

    Config = ModelJudgeConfig
    settings: ModelJudgeConfig

    def engine(self, text_engine: Engine | None, around: Surroundings) -> JudgingEngine:
        if text_engine is None:
            raise UsageError(f"judge={self.settings.kind} writes with a model: give policy.model=...")
        return ModelCritiques(self.settings, template_of(self.settings), text_engine)

    def read(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        return template_of(self.settings).read(turns, finish, steps)

    def sampling(self) -> SamplingConfig:
        own = self.settings
        found = template_of(own).sampled(
            own.votes, temperature=own.temperature, top_p=own.top_p, top_k=own.top_k, max_tokens=own.max_tokens
        )
        return replace(found, stop_at_answer=False)

    def identity(self) -> Mapping[str, object]:
        template = template_of(self.settings)
        return {"template_sha256": template.sha256()} if isinstance(template, Own) else {}


class ModelCritiques:
    """The engine of a judge that is a model."""

    def __init__(self, settings: ModelJudgeConfig, template: Template, text_engine: Engine) -> None:
        self._template = template
        self._text_engine = text_engine
        self._named = settings.chosen_template.value
        self._writer = Writer(text_engine, votes=settings.votes, max_tokens=settings.max_tokens, whole_chains=True)

    @property
    def model(self) -> str:
        return f"{self._text_engine.policy}:{self._named}"

    @property
    def capacity(self) -> int:
        return self._writer.capacity

    async def start(self) -> None:
        if isinstance(self._template, Own):
            self._template.sha256()
        with named(_NAMES):
            await self._text_engine.start()
            # A tokenizer without a chat template is reported now, not at the first chain.
            self._writer.prompt([{"role": "user", "content": "1 + 1?"}], "")

    async def critiques(self, chain: ChainText) -> Sequence[Critique]:
        with named(_NAMES):
            written = await self._template.write(chain, self._writer)
        return [self._critique(each, len(chain.steps)) for each in written.critiques]

    async def close(self) -> None:
        await self._text_engine.close()

    def _critique(self, written: WrittenCritique, steps: int) -> Critique:
        return Critique(
            turns=written.turns,
            finish=written.finish,
            reading=self._template.read(written.turns, written.finish, steps),
            n_tokens=written.n_tokens,
            n_prompt_tokens=written.n_prompt_tokens,
        )


def template_of(own: ModelJudgeConfig) -> Template:
    """The template of the settings. A file of the user's is not read for it."""
    match own.chosen_template:
        case JudgeTemplate.good_ok_bad:
            return GoodOkBad(own.index_base, show_answer=own.show_answer)
        case JudgeTemplate.own:
            file, parser, base = own.template_file, own.parser, own.index_base
            if file is None or parser is None or base is None:
                raise UsageError("judge.template=own needs judge.template_file, judge.parser and judge.index_base")
            return Own(base, parser=parser, file=file, show_answer=own.show_answer)
        case published:
            return PUBLISHED[published.value](own.index_base)
