"""Commands of installed plug-ins: another kind of run has its command and its call from Python for nothing.

    [project.entry-points."stepvalue.tasks"]
    count_tokens = "my_package.count_tokens:CountTokens"

names a class: see `runtime.chain_run.rows`.
"""

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from pipeline.cli.command import Command, write_lines
from pipeline.cli.workers import Work, cost_lines, ending_lines, head_line
from pipeline.config.fields import describe_settings
from pipeline.core.formatting import format_count
from pipeline.storage.tasks import TASKS

if TYPE_CHECKING:
    from pipeline.core.progress import Summary
    from pipeline.runtime.chain_run.estimate import Estimate

_MOST_USED = 10


def task_command(name: str) -> Command:
    """The command of a task. Raises UsageError for one that cannot be used."""
    task = TASKS.load(name)

    def ended(config: Any, found: "Summary") -> bool:
        chains = found.added["chains"]
        ending = ending_lines(found, format_count(chains, "chain"), (chains, "{:,.1f} chains/s"))
        with TASKS.blame(name, "lines"):
            own = [*task(config).lines(found)]
        write_lines([*own, *ending])
        return found.tally["chains"] > 0

    def estimated(_: Any, plan: "Estimate") -> Iterator[str]:
        yield head_line(plan, task.to_do)
        yield from cost_lines(plan)

    work = Work(run=task, ended=ended, estimated=estimated, blame=lambda: TASKS.blame(name, "__init__"))
    settings = [each.name for each in describe_settings(task.settings) if not is_dataclass(each.kind)]
    return Command(
        name=name,
        summary=task.summary,
        about=f"{name}: {task.summary}.",
        examples=tuple(task.examples),
        most_used=tuple(settings[:_MOST_USED]),
        schema=task.settings,
        run=work,
        work=work,
        flags=("estimate",),
    )
