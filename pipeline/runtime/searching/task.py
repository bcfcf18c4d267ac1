"""The task `search`: a scorer steers a policy."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pipeline.config.search import SearchRunConfig
from pipeline.core.errors import UsageError
from pipeline.data.rows import input_digest, is_given
from pipeline.engines.base import OnDevices, Surroundings
from pipeline.engines.registry import policy_for
from pipeline.graders.registry import grader_version
from pipeline.runtime.answer_ending import stops_at_answer
from pipeline.runtime.chain_run.chain_task import ChainTask
from pipeline.runtime.intake import LeftOutRows
from pipeline.runtime.scoring.task import calibration_id
from pipeline.runtime.searching.devices import divided, shared_devices
from pipeline.runtime.searching.problems import problem_tables
from pipeline.runtime.searching.worker import Searching, searching_work
from pipeline.runtime.state import section_identity
from pipeline.scorers.registry import scorer_for
from pipeline.searches.registry import search_for
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import SEARCH
from pipeline.storage.storage import Storage


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
        return problem_tables(self.config, left_out)

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
        return shared_devices(divided(self.config))

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
