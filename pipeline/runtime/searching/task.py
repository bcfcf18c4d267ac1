"""The task `search`: a scorer steers a policy. What its workers need of their devices, which problems it has, and what is to be
doubted of it."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pipeline.config.search import SearchRunConfig
from pipeline.core.errors import StepvalueError, UsageError
from pipeline.core.records import ChainText, InputRow, Reject, RejectReason, RowLocation
from pipeline.core.tables import CHAINS_WITH_ANSWERS
from pipeline.data.prompts import opened_thinking
from pipeline.data.rows import input_digest, is_given
from pipeline.engines.base import EngineNeeds, OnDevices, Surroundings
from pipeline.engines.registry import policy_for
from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for, grader_version
from pipeline.runtime.answer_ending import stops_at_answer
from pipeline.runtime.chain_run.chain_task import ChainTask, numbered_rows
from pipeline.runtime.chain_run.given import chain_of, read_answered_or_not
from pipeline.runtime.intake import LeftOutRows, read_input
from pipeline.runtime.scoring.task import calibration_id, calibration_of
from pipeline.runtime.searching.worker import Searching, searching_work
from pipeline.runtime.state import section_identity
from pipeline.scorers.registry import scorer_for
from pipeline.searches.log import prefix_id
from pipeline.searches.registry import search_for
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import SEARCH
from pipeline.storage.storage import Storage

POLICY_SHARE, SCORER_SHARE = 0.5, 0.38
"""Shares of a GPU's memory where a policy and a scorer share it and neither setting says otherwise. The rest is for activations
and for the two contexts of the device. A policy needs more, for it holds long chains while a scorer only reads them."""


class SearchTask(ChainTask[SearchRunConfig]):
    """Searches all problems of `data` into the folder `run_dir`. The counts are those of `searches.results.search_tally`."""

    name, doing, counted = SEARCH, "searching", "problems"
    to_do, done, results, noun = "search", "searched", "searches", "problem"

    def __init__(self, config: SearchRunConfig) -> None:
        """Raises UsageError as `check_search` does."""
        super().__init__(replace(config, run_dir=storage_at(config.run_dir).run_dir))
        check_search(config)

    def storage(self) -> Storage:
        return storage_at(self.config.run_dir)

    @property
    def place(self) -> str:
        path = self.config.data.path
        return "the given data" if is_given(path) else path

    def chains(self, left_out: LeftOutRows) -> Iterator[pa.Table]:
        return numbered_rows(_problems(self.config, left_out), CHAINS_WITH_ANSWERS)

    def chains_identity(self) -> dict[str, object]:
        return {**section_identity("data", self.config.data), "input": input_digest(self.config.data.path)}

    def determines(self) -> dict[str, object]:
        config = self.config
        policy, search = policy_for(config.policy), search_for(config.search)
        fields: dict[str, object] = {
            "grader_version": grader_version(),
            "policy_fingerprint": policy.fingerprint(),
            **section_identity("policy", config.policy),
            **policy.identity(),
            **section_identity("sampling", config.sampling),
            "sampling.stop_at_answer": stops_at_answer(config),
            **section_identity("search", config.search),
            **section_identity("grader", config.grader),
            "calibration": calibration_id(config),
        }
        if search.scores:
            scorer = scorer_for(config.scorer)
            fields |= {
                "scorer_fingerprint": scorer.fingerprint(),
                **section_identity("scorer", config.scorer),
                **scorer.identity(),
            }
        return fields

    def model(self) -> OnDevices:
        return SharedDevices(divided(self.config))

    def spread(self, parts: int) -> SearchRunConfig:
        config = divided(self.config)
        spread = replace(config, policy=policy_for(config.policy).with_tensor_parallel(parts))
        if not search_for(config.search).scores:
            return spread
        return replace(spread, scorer=scorer_for(config.scorer).with_tensor_parallel(parts))

    def work(self, around: Surroundings) -> Searching:
        return searching_work(divided(self.config), around)


def check_search(config: SearchRunConfig) -> None:
    """Raise UsageError for a method, policy or scorer that is not installed, and for settings that exclude each other, or with
    which no chain would end."""
    search = search_for(config.search)
    if not search.scores and config.calibration is not None:
        raise UsageError(f"calibration has no effect: search={config.search.method} asks for no scores; leave it out")
    if search.scores:
        scorer_for(config.scorer)
    if search.scores and search.newest_only:  # It grows chains step by step.
        policy_for(config.policy).check_stepwise()
    try:
        config.policy.check_complete(config.sampling)
    except ValueError as error:
        raise UsageError(str(error)) from error


class SharedDevices(OnDevices):
    """A policy and a scorer side by side; the policy alone where the method asks for no scores."""

    def __init__(self, config: SearchRunConfig) -> None:
        self._policy = policy_for(config.policy)
        scorers = [scorer_for(config.scorer)] if search_for(config.search).scores else []
        self._both: tuple[OnDevices, ...] = (self._policy, *scorers)
        self.loads_model = any(each.loads_model for each in self._both)

    def devices(self) -> int | None:
        return self._policy.devices()

    def choose_tensor_parallel(self, gpus: int, memory: float | None) -> int:
        share = None if memory is None or len(self._both) < 2 else memory / 2
        return max(each.choose_tensor_parallel(gpus, share or memory) for each in self._both)

    def given_tensor_parallel(self) -> int | None:
        return max((parts for each in self._both if (parts := each.given_tensor_parallel()) is not None), default=None)

    def needs(self, gpus: float) -> EngineNeeds:
        needs = [each.needs(gpus) for each in self._both if each.loads_model] or [self._policy.needs(gpus)]
        return EngineNeeds(
            memory_share=min(1.0, sum(each.memory_share for each in needs)),
            folder=needs[0].folder,
            hub_names=tuple(name for each in needs for name in each.hub_names),
        )

    def uses_gpus(self) -> bool | None:
        said = [each.uses_gpus() for each in self._both]
        return True if True in said else None if None in said else False

    def check_gpus(self, gpus: float) -> None:
        for each in self._both:
            each.check_gpus(gpus)


def divided(config: SearchRunConfig) -> SearchRunConfig:
    """The settings with a share of the GPU's memory for each of two models that are loaded, unless the settings say so."""
    if not search_for(config.search).scores:
        return config
    policy, scorer = config.policy, config.scorer
    both = policy_for(policy).loads_model and scorer_for(scorer).loads_model
    if not both or any(getattr(each, "memory_share", 0.0) is not None for each in (policy, scorer)):
        return config
    return replace(
        config,
        policy=replace(policy, memory_share=POLICY_SHARE),  # type: ignore[call-arg]
        scorer=replace(scorer, memory_share=SCORER_SHARE),  # type: ignore[call-arg]
    )


_First = tuple[RowLocation, tuple[str, ...]]
"""Where the first row of a problem is, and its known answers."""


def _problems(config: SearchRunConfig, left_out: LeftOutRows) -> Iterator[ChainText]:
    """The problems, with or without a known answer, and with the chain that a row has, where the method uses it."""
    uses_given = search_for(config.search).uses_given
    seen: dict[str, _First] = {}
    with_chains: dict[str, _First] = {}
    with checker_for(config.grader) as checker:
        for read in read_input(config.data, checker, read=read_answered_or_not):
            if isinstance(read, Reject):
                left_out.add(read)
            elif uses_given and read.solution is not None:
                first = with_chains.setdefault(read.problem.problem_id, (read.location, read.problem.golds))
                if read.problem.golds and first[1] and read.problem.golds != first[1]:
                    left_out.add(_repeated(read, *first))
                else:
                    yield _problem(read, checker, opened_thinking(config.policy.prompt.thinking))
            elif (known := seen.get(read.problem.problem_id)) is None:
                seen[read.problem.problem_id] = read.location, read.problem.golds
                yield _problem(replace(read, solution=None), checker)
            elif read.solution is None or read.problem.golds != known[1]:
                left_out.add(_repeated(read, *known))
            # Other rows of a problem with the same answer only have other chains of it.


def _repeated(row: InputRow, location: RowLocation, golds: tuple[str, ...]) -> Reject:
    other = "" if row.problem.golds == golds else ", with another answer,"
    return Reject(
        location=row.location,
        reason=RejectReason.DUPLICATE,
        detail=f"the same problem{other} is at {location}; that row is searched",
        source_id=row.source_id,
    )


def _problem(row: InputRow, checker: Checker, before: str = "") -> ChainText:
    found = chain_of(row, checker, tuple(gold for gold in row.problem.golds if checker.parses(gold)), before)
    beginnings = (found.steps[: number + 1] for number in range(len(found.steps)))
    return replace(found, prefix_ids=tuple(prefix_id(found.problem_id, steps) for steps in beginnings))


def doubts(config: SearchRunConfig) -> Iterator[str]:
    """What a user should doubt of the scores that a search goes by, a line each: scores of other steps than those of the
    scorer's training, or of a policy that they do not fit, a confidence that is compared with uncalibrated scores, a
    calibration for another policy, and a gate that nothing can pass. Raises InputError for a file that is no calibration, and
    UsageError for a method, policy or scorer that is not installed."""
    if not search_for(config.search).scores:
        return
    scorer = scorer_for(config.scorer)
    yield from scorer.warnings(config.data)
    yield from scorer.warnings_beside(policy_for(config.policy))
    accept, reliability = config.search.accept, config.search.reliability
    if reliability is not None and scorer.states_reliability() is False:
        yield (
            f"search.reliability={reliability:g}: this scorer states no reliability, so nothing will be trusted, and no search "
            "ends early; leave it out, or take a scorer that writes several critiques (scorer=generative scorer.votes=8)"
        )
    calibration = calibration_of(config)
    if calibration is None:
        if accept is not None:
            yield (
                f"search.accept={accept:g} is compared with the scorer's own scores, which may be far from "
                "probabilities: make a calibration with `calibrate` and give calibration=FILE"
            )
        return
    if accept is not None and accept > calibration.highest:
        yield (
            f"search.accept={accept:g} is above all values of calibration={config.calibration}, of which the highest is "
            f"{calibration.highest:.3f}: nothing will be trusted, and no search ends early; ask for less"
        )
    made_for, policy = calibration.made_from.policy, _identity(config)
    if policy is not None and policy != made_for:
        yield (
            f"calibration={config.calibration} is for the policy {made_for}, and {policy} searches: calibrated scores are then "
            "no probabilities; calibrate with rollouts of this policy"
        )


def _identity(config: SearchRunConfig) -> str | None:
    """The policy as `calibrate` knows it; None where it cannot be learned here. Then its workers say why."""
    try:
        return asyncio.run(policy_for(config.policy).facts(config.sampling)).policy
    except (StepvalueError, OSError):
        return None
