"""A search that is interrupted, whose engines die, or on which two drivers work, ends with the tables of one that is not."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.config.fields import as_type
from pipeline.config.search import SearchRunConfig
from pipeline.core.errors import StoreError
from pipeline.core.records import ChainText
from pipeline.engines.base import Engine
from pipeline.engines.oracle import OracleEngine, OraclePolicyConfig
from pipeline.runtime.sampling import HIGH
from pipeline.scorers.base import ScoringEngine, StepScores
from pipeline.searches.base import WHOLE, Sample
from pipeline.searches.log import root_of
from pipeline.storage.commits import CommitState, encode_commit, record_sequence
from pipeline.storage.local import LocalStorage
from pipeline.storage.location import storage_at
from pipeline.storage.stored_search import stored_search
from tests.oracles.lab import LabEngine, LabPolicyConfig
from tests.runtime.searching.starts import MortalDisk, Work, at_once, started, with_engines
from tests.runtime.searching.tables import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES, TABLES, assert_alike, tables
from tests.runtime.virtual_clock import QuickDisk
from tests.searches.runs import search_in, settings, sums

pytestmark = pytest.mark.slow

PROBLEMS = 6
QUICK = (
    "search.n=4", "run.unit_problems=3", "run.attempts=1", "run.progress_seconds=0.05",
    "policy.lab.depth=4", "scorer.lab.depth=4",
)  # fmt: skip
SLOW = ("policy.lab.tokens_per_second=20000", "run.flush_seconds=0.01")
INTERRUPTED = ("best_of_n", "beam", "mcts")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, pl.DataFrame]]:
    """The tables of searches to which nothing happens."""
    folder = tmp_path_factory.mktemp("calm")
    return {
        method: tables(search_in(folder / method, sums(PROBLEMS), f"search={method}", *QUICK)) for method in INTERRUPTED
    }


def beam(folder: Path, *more: str) -> SearchRunConfig:
    return settings(folder, sums(PROBLEMS), "search=beam", *QUICK, *more)


def assert_sound(run_dir: str) -> None:
    report = audit(AuditConfig(run_dir=run_dir))
    assert not report.findings
    assert report.sound


@pytest.mark.parametrize("method", INTERRUPTED)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))])
def test_a_search_goes_on_after_its_last_commit(
    method: str, seed: int, calm: dict[str, dict[str, pl.DataFrame]], tmp_path: Path
) -> None:
    # An oracle answers all requests for whole chains at once: there the commits are those of single problems.
    alone = ("run.unit_problems=1", "run.units_in_flight=1") if method == "best_of_n" else ()
    config = settings(tmp_path, sums(PROBLEMS), f"search={method}", *QUICK, *SLOW, *alone)
    luck, deaths, kept = random.Random(f"{method} {seed}"), 0, 0
    while True:
        try:
            started(config, MortalDisk(luck.randrange(1, 4), before=luck.random() < 0.5))
            break
        except StoreError:
            deaths += 1
        partial = stored_search(storage_at(config.run_dir), partial=True)
        kept = max(kept, len(list(Path(config.run_dir).glob("flushed/*"))))
        assert deaths < 60, partial
    assert deaths >= 2
    assert kept or method == "best_of_n", "answers are committed before their searches end"
    assert_alike(tables(config.run_dir), calm[method])
    assert_sound(config.run_dir)


@pytest.mark.parametrize(
    ("victim", "fault"),
    [
        ("policy", "hang_after"),
        ("scorer", "fail_after"),
        pytest.param("policy", "fail_after", marks=pytest.mark.nightly),
        pytest.param("scorer", "hang_after", marks=pytest.mark.nightly),
    ],
)
def test_an_engine_that_dies_or_hangs_is_replaced(
    victim: str, fault: str, calm: dict[str, dict[str, pl.DataFrame]], tmp_path: Path
) -> None:
    config = beam(tmp_path, f"{victim}.lab.{fault}=17", "run.attempts=3", "run.stall_seconds=5")
    started(config)
    assert_alike(tables(config.run_dir), calm["beam"])


def problem(calm: dict[str, dict[str, pl.DataFrame]], row: int) -> str:
    return str(calm["beam"][SEARCHES]["problem_id"][row])


@pytest.mark.parametrize("victim", ["policy", "scorer"])
def test_a_problem_that_kills_an_engine_is_written_off_alone(
    victim: str, calm: dict[str, dict[str, pl.DataFrame]], tmp_path: Path
) -> None:
    """What it was before the scorer died of it counts: its samples stay in the log, and are counted."""
    deep = calm["beam"][STEP_SCORES].filter((pl.col("row") == 4) & (pl.col("step") == 2))["prefix_id"][0]
    poison = deep if victim == "scorer" else Sample(node=root_of(problem(calm, 4)), draw=2).key
    config = beam(tmp_path, f"{victim}.lab.poison={poison}")
    assert started(config).tally["engine_failed"] == 1
    found = tables(config.run_dir)
    (failed,) = found[SEARCHES].filter(pl.col("row") == 4).to_dicts()
    assert (failed["stopped"], failed["chosen"]) == ("failed", None)
    assert victim == "policy" or failed["policy_tokens"] > 0
    assert not found[CANDIDATES].filter(pl.col("row") == 4).height
    assert_others_alike(4, found, calm["beam"])
    assert started(config).units_done_now == 0
    assert_sound(config.run_dir)


def assert_others_alike(row: int, found: dict[str, pl.DataFrame], calm: dict[str, pl.DataFrame]) -> None:
    others = pl.col("row") != row
    assert_alike(
        {name: found[name].filter(others) for name in TABLES}, {name: calm[name].filter(others) for name in TABLES}
    )


def test_a_request_that_the_engine_refuses_costs_its_chain(
    calm: dict[str, dict[str, pl.DataFrame]], tmp_path: Path
) -> None:
    first = Sample(node=root_of(problem(calm, 0)), draw=0, steps=WHOLE).key
    words = ("search=best_of_n", *QUICK, f"policy.lab.refuse={first}")
    found = tables(search_in(tmp_path, sums(PROBLEMS), *words))
    refused = found[SAMPLES].filter(pl.col("sample_id") == first)
    assert refused["finish"].to_list() == ["engine_failed"]
    assert refused["verdict"].to_list() == [None]
    chain = found[CANDIDATES].filter((pl.col("row") == 0) & pl.col("cut"))
    assert (chain.height, chain["final_answer"].to_list(), chain["chosen"].to_list()) == (1, [None], [False])
    assert_others_alike(0, found, calm["best_of_n"])


def test_two_drivers_of_one_search_end_with_its_tables(
    calm: dict[str, dict[str, pl.DataFrame]], tmp_path: Path
) -> None:
    """Without a lock both do all the work, and each takes what the other one has committed."""
    config = beam(tmp_path, *SLOW, "run.lock=false")
    assert at_once(lambda: started(config), lambda: started(config)) == []
    assert_alike(tables(config.run_dir), calm["beam"])
    assert_sound(config.run_dir)


class Twin(QuickDisk):
    """Another driver is always quicker by a moment at first: it has the same answers, and the name of the commit."""

    commits = 4

    def link(self, path: str, new_path: str) -> None:
        super().link(path, new_path)
        name = Path(new_path)
        if name.parent.name == "commits" and name.stem.startswith("unit-") and self.commits:
            self.commits -= 1
            unit_id, number = name.stem.removeprefix("unit-").rsplit("-", 1)
            sequence = record_sequence(LocalStorage(name.parent.parent), "unit", unit_id)
            commit = sequence.commits[int(number)]
            assert commit.state is CommitState.PART
            name.write_bytes(encode_commit(replace(commit, learned_from=commit.learned_from + 1)))
            raise FileExistsError(new_path)


def test_answers_that_the_log_has_already_are_not_committed_again(
    calm: dict[str, dict[str, pl.DataFrame]], tmp_path: Path
) -> None:
    config = beam(tmp_path, *SLOW, "run.lock=false")
    twin = Twin()
    started(config, twin)
    assert not twin.commits
    assert_alike(tables(config.run_dir), calm["beam"])
    assert_sound(config.run_dir)


class OtherDraws(OracleEngine):
    """A policy whose samples differ from start to start, as those of a real one do."""

    def __init__(self, policy: LabPolicyConfig, start: int) -> None:
        super().__init__(policy, policy.lab.shape)
        self.start_number = start

    def _written(self, request):  # type: ignore[no-untyped-def]
        other = f"{self.start_number}{request.request_id}"
        return super()._written(replace(request, request_id=other))


def drawn_otherwise(config: SearchRunConfig, start: int) -> Work:
    """The work of this start."""
    policy = as_type(config.policy, LabPolicyConfig)
    return with_engines(cast(Engine, LabEngine(OtherDraws(policy, start), policy.lab)))


@pytest.mark.parametrize("method", ["beam", "mcts"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_drivers_whose_policies_draw_otherwise_agree_on_one_path(method: str, seed: int, tmp_path: Path) -> None:
    """A later start and a second driver draw other texts. What is committed first counts, and what follows from it."""
    config = settings(tmp_path, sums(PROBLEMS), f"search={method}", *QUICK, *SLOW, "run.lock=false")
    luck = random.Random(f"{method} {seed}")
    with pytest.raises(StoreError):
        started(config, MortalDisk(luck.randrange(2, 5), before=False), drawn_otherwise(config, 0))

    def start(number: int) -> None:
        started(config, work=drawn_otherwise(config, number))

    assert at_once(lambda: start(1), lambda: start(2)) == []
    found = tables(config.run_dir)
    assert found[SEARCHES].height == PROBLEMS
    assert_sound(config.run_dir)


def test_what_follows_a_lost_answer_is_left_out(tmp_path: Path) -> None:
    """A file with the first answers is damaged, and the policy draws others: the later ones follow texts that are gone."""
    config = beam(tmp_path, *SLOW)
    with pytest.raises(StoreError):
        started(config, MortalDisk(8, before=False), drawn_otherwise(config, 0))
    parts = list(Path(config.run_dir, "flushed").glob("samples-*"))
    assert len(parts) > 2
    first = min(parts, key=lambda path: (pl.read_parquet(path)["number"].min(), path.stat().st_mtime_ns))
    first.write_bytes(first.read_bytes()[:-9])
    found = started(config, work=drawn_otherwise(config, 1))
    assert found.damaged
    assert tables(config.run_dir)[SEARCHES].height == PROBLEMS
    assert_sound(config.run_dir)


class Tardy:
    """A scorer that takes a long time for each chain, and remembers how many wait at most. It keeps `capacity` chains busy."""

    capacity = 8

    def __init__(self, usual: ScoringEngine) -> None:
        self.usual = usual

    def __getattr__(self, name: str) -> Any:
        return getattr(self.usual, name)

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        await asyncio.sleep(0.5)
        return await self.usual.score(chains)


def test_a_slow_scorer_holds_back_further_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems that would only wait for it are not begun."""
    n, problems = 8, 400
    words = ("search=best_of_n", *QUICK, f"search.n={n}", "run.unit_problems=2", "run.units_in_flight=1000")
    config = settings(tmp_path, sums(problems), *words)
    most = [0]

    def work(config, around):  # type: ignore[no-untyped-def]
        made = with_engines()(config, around)
        assert made.scoring is not None
        made = with_engines(scoring=cast(ScoringEngine, Tardy(made.scoring)))(config, around)
        queue = made.scores
        assert queue is not None
        send = queue._send

        def counted() -> None:
            most[0] = max(most[0], queue.open)
            send()

        monkeypatch.setattr(queue, "_send", counted)
        return made

    assert started(config, work=work).tally["problems"] == problems
    engine = OracleEngine(OraclePolicyConfig())
    assert Tardy.capacity < most[0] <= (1 + HIGH) * engine.capacity + Tardy.capacity + 4 * n
    assert most[0] < n * problems / 3
