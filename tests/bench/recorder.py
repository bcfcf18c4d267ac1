"""The requests of a run with a fixed number of rollouts, in the order in which it makes them, without any engine."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pipeline.config.label import LabelConfig
from pipeline.core.errors import EngineDied
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Request
from pipeline.data.prompts import Tokenizer
from pipeline.data.rows import input_digest
from pipeline.graders.registry import checker_for
from pipeline.runtime.intake import stage
from pipeline.runtime.labelling import Labelling
from pipeline.runtime.problem_budget import unit_target_of
from pipeline.runtime.state import identity
from pipeline.runtime.worker import UnitTask
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.unit_files import UnitFiles
from pipeline.storage.units import UnitRef, units_of
from tests.settings import deciding


class _Recorder:
    """An engine that answers nothing and remembers what it was asked."""

    def __init__(self, tokenizer: Tokenizer, max_model_len: int) -> None:
        self.tokenizer = tokenizer
        self.max_model_len = max_model_len
        self.policy = "recorder"
        self.load = Load()
        self.capacity = 1
        self.hardware = None
        self.work = EngineWork()
        self.requests: list[Request] = []

    async def start(self) -> None: ...

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        self.requests.extend(requests)
        yield []

    def abort(self, request_ids: Iterable[str]) -> None: ...

    async def close(self) -> None: ...


def requests_of(config: LabelConfig, run_dir: Path, tokenizer: Tokenizer, max_model_len: int) -> list[Request]:
    """`run_dir` is a new one, used for nothing else."""
    recorder = _Recorder(tokenizer, max_model_len)
    storage = LocalStorage(run_dir)
    staged_id = str(identity(config, input_digest(config.data.path))[STAGED_INPUT])
    with checker_for(config.grader) as checker:
        staged = stage(storage, staged_id, config.data, config.run, checker)
    asyncio.run(_ask(Labelling(config, recorder, storage), config, storage, list(units_of(storage, staged))))
    return recorder.requests


async def _ask(labelling: Labelling, config: LabelConfig, storage: LocalStorage, units: Sequence[UnitRef]) -> None:
    await labelling.start()
    for unit in units:
        task = UnitTask(unit=unit, unit_target=unit_target_of(*deciding(config)))
        log = await labelling.open(storage, task, UnitFiles(storage, unit.unit_id))
        with suppress(EngineDied):  # the recorder answers nothing
            await labelling.work(task, log)
    await labelling.close()
