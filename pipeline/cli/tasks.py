"""Commands of installed plug-ins: another kind of run has its command and its Python door for nothing.

    [project.entry-points."stepvalue.tasks"]
    count = "my_package.count:COUNT"

names an object with a dataclass of `settings`, of which `cluster` is one; a `summary` and `examples` for help;
`run(config, hiring, watch, stop)`, which returns a `ChainRun`; and `lines(config, found)` on what came of it. Where `estimate`
is a setting, `estimate(config)` gives the lines of --estimate.
"""

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from pipeline.cli.command import Command, write_lines
from pipeline.cli.workers import Work, ending_lines
from pipeline.config.fields import describe_settings
from pipeline.core.formatting import format_count
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    from pipeline.core.progress import ChainRun

TASKS: Registry[Any] = Registry(
    "tasks", noun="task", setting="command", ours={}, needs=("settings", "summary", "examples", "run", "lines")
)
_MOST_USED = 10


def task_command(name: str) -> Command:
    """The command of a task. Raises UsageError for one that cannot be used."""
    task = TASKS.guard(name, TASKS.load(name))
    own = [each.name for each in describe_settings(task.settings) if not is_dataclass(each.kind)]

    def ended(config: Any, found: "ChainRun") -> bool:
        chains = found.now.chains
        ending = ending_lines(found, format_count(chains, "chain"), (chains, "{:,.1f} chains/s"))
        write_lines([*task.lines(config, found), *ending])
        return True

    estimates = "estimate" in own
    work = Work(run=task.run, ended=ended, estimate=task.estimate if estimates else None)
    return Command(
        name=name,
        summary=task.summary,
        about=f"{name}: {task.summary}.",
        examples=tuple(task.examples),
        most_used=tuple(own[:_MOST_USED]),
        schema=task.settings,
        run=work,
        work=work,
        flags=("estimate",) if estimates else (),
    )
