"""A schedule: starts of one run, what befalls each, and at the end one that is left in peace and has to finish.

Driver, worker and store are the code of a real run. `play` returns what should never be: rows lost, doubled or changed,
success that is none, an error that is no `StepvalueError`, a start that could have finished and did not.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from pipeline.config.label import DataConfig, LabelConfig, RunConfig, SamplingConfig
from pipeline.core.errors import Interrupted, StepvalueError
from pipeline.core.progress import Status, Summary
from pipeline.data.rows import input_digest
from pipeline.runtime.chain_run.run import run_held
from pipeline.runtime.chain_run.task import HeldRun, Task
from pipeline.runtime.driver import LabelTask
from pipeline.runtime.state import identity
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import WorkerHandle, WorkerPool
from pipeline.storage.commits import INPUT, record_sequences, resolve
from pipeline.storage.editions import current_edition, current_files, edition_sequence
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import STAGED_INPUT, as_recorded, check_claim, claim, recorded_identity
from pipeline.storage.units import UnitRef, units_of
from tests.faults.disk import FakeDisk, Strike, flipped, torn
from tests.faults.observer import Observer
from tests.faults.proof import Claim, Reference, faults_of, key_of, labels_of, wholes
from tests.faults.reading import repeated_rows
from tests.faults.workers import RUN_DIR, Answers, Fate, SignedWorker
from tests.faults.world import Process, World
from tests.settings import estimator_settings, policy_settings

JUMP_SECONDS = 1e6
RUN = RunConfig(
    unit_problems=1,
    units_in_flight=2,
    flush_seconds=0.7,
    start_timeout_seconds=60.0,
    stall_seconds=8.0,
    progress_seconds=2.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of the run, `target` rollouts per prefix. Times are seconds after it began, None: never.

    `strikes` befall its effects by number, `fates` its workers in the order they are hired; later ones are healthy.
    `second`: a second driver starts on the same directory, which has no lock. `damage`: the number of files that are
    damaged before. `grown`: the input has its later rows, as it has at all starts after.
    """

    target: int
    workers: int = 1
    fates: Sequence[Fate] = ()
    strikes: Mapping[int, Strike] = field(default_factory=dict)
    killed: float | None = None
    power_cut: float | None = None
    stopped: float | None = None
    jumped: float | None = None
    second: float | None = None
    second_target: int = 0
    damage: int = 0
    grown: bool = False

    @property
    def must_finish(self) -> bool:
        """Whether the faults are such as a driver gets over."""
        ends = (self.killed, self.power_cut, self.stopped, self.jumped, self.second)
        hopeless = any(fate.never_starts for fate in self.fates)
        return not (self.strikes or hopeless) and all(time is None for time in ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """`turns` is how likely each effect is to let others go first. `poison`: requests that no engine survives, by number."""

    starts: Sequence[Start]
    turns: float = 1.0
    poison: Sequence[int] = ()
    staged: bool = True

    @property
    def targets(self) -> set[int]:
        return {target for start in self.starts for target in (start.target, start.second_target) if target}


class Scenario:
    """An input, staged once, and what runs without faults make of it. `later`: rows that the input gets after a while."""

    def __init__(
        self,
        folder: Path,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        estimator: str,
        later: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        path, grown = folder / f"{name}.jsonl", folder / f"{name}-grown.jsonl"
        for file, content in ((path, rows), (grown, (*rows, *later))):
            file.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
        self.grows = bool(later)
        self._grown = str(grown)
        self._config = LabelConfig(
            run_dir=str(RUN_DIR),
            data=DataConfig(path=str(path)),
            policy=policy_settings("oracle"),
            sampling=SamplingConfig(solutions=2, max_tokens=64),
            estimator=estimator_settings(estimator),
            run=RUN,
        )
        self._identities = {
            each: identity(self._config, input_digest(str(file))) for each, file in ((False, path), (True, grown))
        }
        self.references: dict[int, Reference] = {}
        """Runs without faults by rollouts per prefix; filled by `requests`."""
        self._requests: dict[int, list[str]] = {}

    def config(self, target: int, *, grown: bool) -> LabelConfig:
        config = replace(self._config, sampling=replace(self._config.sampling, rollouts=target))
        return replace(config, data=replace(config.data, path=self._grown)) if grown and self.grows else config

    def identity(self, *, grown: bool) -> dict[str, object]:
        """The identity of a start, with its input."""
        return self._identities[grown and self.grows]

    @cached_property
    def staged(self) -> FakeDisk:
        """The run directory after a start that was stopped when its input was staged."""
        play = _Play("staged", self, Schedule(starts=[], staged=False), FakeDisk())
        play.world.run(play.start(Start(target=1, stopped=0.0)))
        return play.world.disk

    def units(self, storage: LocalStorage) -> list[UnitRef]:
        """The units of the staged input, which has to be there."""
        staged_id = recorded_identity(storage)[STAGED_INPUT]
        (staged,) = (found for found in record_sequences(storage, INPUT) if found.sequence_id == staged_id)
        whole = resolve(staged).whole
        assert whole is not None
        return list(units_of(storage, whole))

    def requests(self, target: int) -> list[str]:
        """Ids of everything that a run without faults asks of its engines."""
        if target not in self._requests:
            asked: set[str] = set()
            self.references[target] = Reference(labels={}, rollouts={})
            # An input that grows before a unit has begun is staged as a whole, with other units.
            for inputs in ((False, True), (True,)) if self.grows else ((False,),):
                play = _Play("reference", self, Schedule(starts=[]), self.staged.copy())
                play.world.run(play.starts([Start(target=target, grown=grown) for grown in inputs]))
                found = wholes(play.storage)
                labels = [label for whole in found for label in labels_of(play.storage, whole)]
                known = self.references[target]
                self.references[target] = Reference(
                    labels={**known.labels, **{key_of(label): label for label in labels}},
                    rollouts={**known.rollouts, **{whole.sequence_id: whole.totals.rollouts for whole in found}},
                )
                asked.update(request for request, _ in play.answers.given)
            self._requests[target] = sorted(asked)
        return self._requests[target]


def play(seed: object, scenario: Scenario, schedule: Schedule) -> World:
    """Everything that happens in a schedule; `violations` of the world say what should not have."""
    played = _Play(seed, scenario, schedule, scenario.staged.copy() if schedule.staged else FakeDisk())
    played.world.run(played.all_starts())
    return played.world


class _Play:
    def __init__(self, seed: object, scenario: Scenario, schedule: Schedule, disk: FakeDisk) -> None:
        self.world = World(seed, disk, turns=schedule.turns)
        self.storage = LocalStorage(RUN_DIR, disk)
        requests = [scenario.requests(target) for target in sorted(schedule.targets)]
        self.answers = Answers(poison=frozenset(requests[-1][number % len(requests[-1])] for number in schedule.poison))
        self._scenario = scenario
        self._schedule = schedule
        self._observer = Observer(self.storage, self.world.violations)
        self._damaged: list[str] = []
        self._hired = 0
        self._most = 0
        self._grown = False
        disk.on_sync = self._observer.folder_synced

    async def all_starts(self) -> None:
        for start in self._schedule.starts:
            await self.start(start)
        for process in self.world.processes:
            process.kill()
        await self.start(Start(target=max(self._schedule.targets)), last=True)

    async def starts(self, starts: Sequence[Start]) -> None:
        for start in starts:
            await self.start(start)

    async def start(self, start: Start, *, last: bool = False) -> None:
        world, loop = self.world, self.world.loop
        self._grown |= start.grown
        for _ in range(start.damage):
            self._damage()
        world.strikes = {world.effects + number: strike for number, strike in start.strikes.items()}
        stop = _Stop(loop.time, None if start.stopped is None else loop.time() + start.stopped)
        fates = iter(start.fates)
        drivers = [(0.0, start.target)]
        if start.second is not None:
            drivers.append((start.second, start.second_target or start.target))
        works = [self._drive(after, target, start, fates, stop) for after, target in drivers]
        driving = asyncio.gather(*works)
        timers = [
            loop.call_later(after, action)
            for after, action in (
                (start.power_cut, world.power_cut),
                (start.jumped, lambda: loop.advance(JUMP_SECONDS)),
            )
            if after is not None
        ]
        outcomes = await driving
        for timer in timers:
            timer.cancel()
        world.strikes = {}
        if last or start.must_finish:
            world.violations += [f"a start that should have finished: {error}" for error in outcomes if error]
        if last and not world.violations:
            self._check_folder()

    async def _drive(
        self, after: float, target: int, start: Start, fates: Iterator[Fate], stop: StopSignal
    ) -> str | None:
        """One driver; what it ended with, None where that was success."""
        await asyncio.sleep(after)
        world, loop = self.world, self.world.loop
        driver = world.process(f"driver{len(world.processes)}")
        self._most = max(self._most, target)
        if start.killed is not None:
            loop.call_later(start.killed, driver.kill)
        config = self._scenario.config(target, grown=self._grown)
        label = self._labelling(driver, config, start.workers, fates, stop)
        try:
            summary: Summary = await loop.run_in_executor(None, label)
            self._check(summary, config)
        except StepvalueError as error:
            return f"{type(error).__name__}: {error}"
        except BaseException as error:  # noqa: BLE001  # of the dead anything may come, of the living nothing else
            if driver.alive:
                world.violations.append(f"an error that no user should meet: {error!r}")
            return repr(error)
        finally:
            driver.kill()
        return None

    def _labelling(
        self, driver: Process, config: LabelConfig, workers: int, fates: Iterator[Fate], stop: StopSignal
    ) -> Callable[[], Summary]:
        storage, asked = LocalStorage(RUN_DIR, driver.disk), self._scenario.identity(grown=self._grown)

        def hire(attempt: int) -> WorkerHandle:
            self._hired += 1
            name, fate = f"worker{self._hired}", next(fates, Fate())
            return cast(WorkerHandle, SignedWorker(config, driver, name, fate, self.answers, self._observer.look))

        @contextmanager
        def hiring(_task: Task[Any]) -> Iterator[WorkerPool]:
            stop.check()
            yield WorkerPool(hire=hire, workers=workers)

        def label() -> Summary:
            run_identity = as_recorded(storage, asked)
            check_claim(storage, run_identity)
            claim(storage, run_identity)
            held = HeldRun(storage=storage, identity=run_identity, asked=asked, stop=stop)
            return run_held(LabelTask(config), held, hiring, _watch, driver.run)

        return label

    def _check(self, summary: Summary, config: LabelConfig) -> None:
        self._observer.look()
        units = self._scenario.units(self.storage)
        claim = Claim(
            config=config,
            most=self._most,
            answers=self.answers,
            damaged=bool(self._damaged),
            references=self._scenario.references,
        )
        if summary.units != len(units):
            self.world.violations.append(f"success over {summary.units} units of {len(units)}")
        self.world.violations += faults_of(self.storage, units, claim)

    def _check_folder(self) -> None:
        complete = {whole.sequence_id: whole for whole in wholes(self.storage)}
        current = current_files(complete.values(), current_edition(edition_sequence(self.storage), complete))
        for table in ("labels", "rollouts", "solutions"):
            if {*self.storage.names(table)} != {name for name in current if name.startswith(f"{table}/")}:
                self.world.violations.append(f"{table}/ holds something else than the current files")
        for table, times in repeated_rows(self.storage).items():
            self.world.violations.append(f"{table}/ holds {times} rows more than once")

    def _damage(self) -> None:
        """One file of the run directory, whichever, is not any more what it was."""
        rng, disk = self.world.rng, self.world.disk
        files = disk.files()
        if not (candidates := self._may_be_damaged(files)):
            return
        path, other = rng.choice(candidates), rng.choice(files)
        content = disk.read(path)
        self._damaged.append(path)
        self._observer.expect_damage(path.removeprefix(f"{RUN_DIR}/"))
        self.world.trace.append(f"  damage {path}")
        changed = [flipped(content, rng), torn(content, rng), bytes(len(content)), disk.read(other)] if content else []
        disk.damage(path, rng.choice([*changed, b"", None]))

    def _may_be_damaged(self, files: list[str]) -> list[str]:
        """`run.json` and the records of the input tell what the run is the result of: one of the two must be left. An input
        that has grown cannot be staged as it was without its first record."""
        if self._scenario.grows:
            files = [file for file in files if not (f"/{INPUT}-" in file and file.endswith("-00000.json"))]
        input_record, run_record = f"/{INPUT}-", "/run.json"
        staged = any(input_record in file for file in files)
        if not staged or any(input_record in file for file in self._damaged):
            return [file for file in files if run_record not in file]
        if any(run_record in file for file in self._damaged):
            return [file for file in files if input_record not in file]
        return files


class _Stop(StopSignal):
    """SIGTERM at a time of the virtual clock."""

    def __init__(self, clock: Callable[[], float], at: float | None) -> None:
        super().__init__()
        self._clock = clock
        self._at = at

    def check(self) -> None:
        if self._at is not None and self._clock() >= self._at:
            raise Interrupted("a schedule stops the run")


def _watch(status: Status) -> None:
    """Nobody looks at the terminal."""
