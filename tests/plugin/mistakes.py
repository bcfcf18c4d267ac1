"""Plug-ins that are wrong, each in one way: examples with a method or a setting that is another one."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass, replace
from types import SimpleNamespace
from typing import Annotated, Any

from pipeline.config.fields import BY_GROUP
from pipeline.core.records import ChainText, Completion, Finish, Reading, ReadingKind, Request, StepValue
from pipeline.examples.estimator import Halves, HalvesConfig
from pipeline.examples.export_format import GOOD_STEPS, GoodSteps, GoodStepsConfig
from pipeline.examples.grader import YesNo
from pipeline.examples.judge import Numerals
from pipeline.examples.picker import Doubtful
from pipeline.examples.policy import Echo, EchoEngine
from pipeline.examples.scorer import Brevity, BrevityEngine
from pipeline.examples.search import Greedy
from pipeline.examples.verifier import Evens, EvensConfig
from pipeline.examples.witness import Sums
from pipeline.pickers.base import Pick
from pipeline.scorers.base import StepScores
from pipeline.searches.base import WHOLE, Found, sample
from pipeline.verifiers.base import Covers, Finding, StepInContext, StepVerdict

HERE = "tests.plugin.mistakes"


@dataclass(frozen=True)
class Mistake:
    """`kind`: the example. `members`: what is wrong in its place. `said`: what a command says of it, after its name."""

    group: str
    kind: Any
    members: Mapping[str, Any]
    said: str

    def made(self, name: str) -> Any:
        """The class, with settings that have its name; a format as it is."""
        if self.group == "exports":
            return type(name, (self.kind,), {"__module__": HERE, **self.members})(GOOD_STEPS.layout)
        members = {"__module__": HERE, **self.members}
        if self.kind is Silent:
            return Silent
        config = getattr(self.kind, "Config", None)
        if config is not None and "Config" not in members:
            chosen: list[Any] = [(config.CHOSEN_BY, Annotated[str, BY_GROUP], name)]
            members["Config"] = make_dataclass("Config", chosen, bases=(config,), kw_only=True, slots=True)
        return type(name, (self.kind,), members)


def raises(*_given: Any) -> Any:
    raise ZeroDivisionError("nothing to divide")


def refuses(*_given: Any) -> Any:
    raise OSError("no")


class LostEngine(EchoEngine):
    lost = True
    """What a test makes good again."""

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        return await EchoEngine.complete(self, raises() if self.lost else requests)


class Above(BrevityEngine):
    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        return [replace(each, scores=(300.0,) * len(each.scores)) for each in await BrevityEngine.score(self, chains)]


def no_numbers(self: Halves, *given: Any) -> list[list[StepValue]]:
    return [[replace(one, value=float("nan")) for one in each] for each in Halves.values(self, *given)]


def beyond(_self: Any, _turns: Sequence[str], _finish: Finish, steps: int) -> Reading:
    return Reading(kind=ReadingKind.ERROR, first_error=steps + 1)


def chooses_the_problem(_self: Any, task: Any) -> Any:
    found = yield from sample(task.root, 0, WHOLE)
    return Found(candidates=(found[-1],), chosen=task.root)


def goes_on_after_the_end(_self: Any, task: Any) -> Any:
    found = yield from sample(task.root, 0, WHOLE)
    yield from sample(found[-1], 0)


def fails_after_a_sample(_self: Any, task: Any) -> Any:
    yield from sample(task.root, 0)
    raises()


def no_rows(self: GoodSteps, _own: Any) -> Any:
    return replace(self.layout, row=lambda _example, _marks: dict[str, Any]()["text"])


def picks(*yielded: Callable[[int], Pick]) -> Mapping[str, Any]:
    return {"picks": lambda _self, problem: iter([pick(min(problem.candidates)) for pick in yielded])}


@dataclass(kw_only=True, slots=True)
class SilentConfig(EvensConfig):
    kind: Annotated[str, BY_GROUP] = "silent"


class Silent(Evens):
    """Children load it too."""

    Config = SilentConfig

    def verify(self, step: StepInContext) -> Finding:
        return Finding(verdict=StepVerdict.HOLDS, evidence="", covers=Covers.WHOLE)


DIVIDED = "ZeroDivisionError: nothing to divide"
AT_WORK = {
    "no_start": Mistake("estimators", Halves, {"__init__": refuses}, "__init__: OSError: no"),
    "leaves": Mistake("estimators", Halves, {"next_rollouts": lambda *_: sys.exit(3)}, "next_rollouts: SystemExit: 3"),
    "too_few": Mistake(
        "estimators",
        Halves,
        {"next_rollouts": lambda *given: Halves.next_rollouts(*given)[1:]},
        "next_rollouts: it must return a list of 3 dicts, one per problem, but returned [",
    ),
    "few_values": Mistake(
        "estimators",
        Halves,
        {"values": lambda *given: [each[1:] for each in Halves.values(*given)]},
        "values: it must return 5 values for a chain of 4 steps, but returned [StepValue(",
    ),
    "no_numbers": Mistake(
        "estimators", Halves, {"values": no_numbers}, "values: value must be a probability or None, but is nan"
    ),
    "lost": Mistake("engines", Echo, {"engine": lambda self, *_: LostEngine(self.settings)}, f"generate: {DIVIDED}"),
    "no_verdict": Mistake("graders", YesNo, {"grade": raises}, f"grade: {DIVIDED}"),
    "no_row": Mistake("exports", GoodSteps, {"layout_for": no_rows}, "making rows: KeyError: 'text'"),
    "above": Mistake("scorers", Brevity, {"engine": lambda self, *_, **__: Above(self.settings)}, "score: chain "),
    "beyond": Mistake("judges", Numerals, {"read": beyond}, "it names step 4 of a chain of 3 steps"),
    "no_claim": Mistake(
        "witnesses", Sums, {"claim": lambda *_: 3}, "claim: it must return a PositionClaim, a StepClaim"
    ),
    "problem": Mistake(
        "searches",
        Greedy,
        {"search": chooses_the_problem, "scores": False},
        "search: it chose a chain that is not among its candidates",
    ),
    "after": Mistake(
        "searches",
        Greedy,
        {"search": goes_on_after_the_end, "scores": False},
        "search: it asks for a sample after the end of a chain",
    ),
    "divides": Mistake("searches", Greedy, {"search": fails_after_a_sample, "scores": False}, f"search: {DIVIDED}"),
    "root": Mistake(
        "pickers", Doubtful, picks(lambda _: Pick(0, 1.0)), "picks: it picks node 0, which is no candidate"
    ),
    "twice": Mistake("pickers", Doubtful, picks(*[lambda at: Pick(at, 1.0)] * 2), " twice"),
    "less": Mistake("pickers", Doubtful, picks(lambda at: Pick(at, -1.0)), "it says that a pick has the gain -1.0"),
    "no_pick": Mistake("pickers", Doubtful, {"picks": raises}, f"picks: {DIVIDED}"),
    "silent": Mistake("verifiers", Silent, {}, "verify: it says holds without any evidence"),
}
"""What fails in a run, by name."""


@dataclass(kw_only=True, slots=True)
class OddConfig(HalvesConfig):
    odd: set[int] | None = None


def section(name: str) -> Mapping[str, Any]:
    """The settings of a format, in a section of this name."""
    return {"Config": type("Config", (GoodStepsConfig,), {"SECTION": name, "__module__": HERE})}


UNUSABLE = {
    "odd": Mistake(
        "estimators", Halves, {"Config": OddConfig}, "cannot be used because of its settings: odd: Unexpected type"
    ),
    "no_settings": Mistake(
        "estimators",
        Halves,
        {"Config": dict},
        "cannot be used: its Config is not a dataclass derived from one of `pipe",
    ),
    "bare": Mistake("exports", GoodSteps, section(""), "SECTION=''"),
    "taken": Mistake("exports", GoodSteps, section("decontaminate"), "SECTION='decontaminate'"),
    "out": Mistake("exports", GoodSteps, section("out"), "SECTION='out'"),
}
"""What is refused before anything starts, by name."""

ELSEWHERE = {
    "nowhere": ("tests.plugin.nowhere:Halves", "cannot be imported: ModuleNotFoundError"),
    "leaving": ("leaving:Halves", "cannot be imported: SystemExit: 3"),
    "abstract": ("pipeline.estimators.base:Estimator", "cannot be used: it has no next_rollouts and no values"),
    "no_class": ("pipeline.examples.estimator:ROWS", "cannot be used: it has no Config and no next_rollouts"),
}
"""Estimators that are refused too: what an entry point names, and what is said."""


MADE = SimpleNamespace(**{name: each.made(name) for name, each in (AT_WORK | UNUSABLE).items()})
"""What the entry points name."""


def points() -> dict[str, dict[str, str]]:
    """The entry points of all."""
    found: dict[str, dict[str, str]] = {"stepvalue.estimators": {name: where for name, (where, _) in ELSEWHERE.items()}}
    for name, each in (AT_WORK | UNUSABLE).items():
        found.setdefault(f"stepvalue.{each.group}", {})[name] = f"{HERE}:MADE.{name}"
    return found
