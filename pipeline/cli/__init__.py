"""The commands: the name, settings, help and function of each.

A command imports its modules when it runs: Ray and the readers load slowly, and a wrong setting should be reported at once.
"""

from pipeline.cli.before import DOCTOR, PLAN
from pipeline.cli.command import Command
from pipeline.cli.label import GROW, LABEL
from pipeline.cli.opinions import CHECK, JUDGE, SCORE
from pipeline.cli.scores import AGREE, CALIBRATE, GRADE, SELECT
from pipeline.cli.search import SEARCH
from pipeline.cli.stored import AUDIT, CHAINS, EXPORT, REGRADE, RELABEL, REPORT, STATUS, TRAIN

COMMANDS: dict[str, Command] = {command.name: command for command in (
    DOCTOR, PLAN, LABEL, STATUS, CHAINS, GROW, JUDGE, CHECK, RELABEL, REGRADE, AUDIT,
    REPORT, EXPORT, TRAIN, SCORE, SEARCH, SELECT, AGREE, CALIBRATE, GRADE,
)}  # fmt: skip


def command_named(name: str) -> Command | None:
    """The command of this name, that of an installed plug-in too. Raises UsageError for a plug-in that cannot be used."""
    if name in COMMANDS:
        return COMMANDS[name]
    from pipeline.cli.compose import refuse_unusable
    from pipeline.cli.tasks import task_command
    from pipeline.storage.tasks import TASKS

    if name not in TASKS.names():
        return None
    refuse_unusable(TASKS, name)
    return task_command(name)


def all_commands() -> dict[str, Command]:
    """The commands, those of installed plug-ins too, without plug-ins that cannot be used."""
    from pipeline.cli.tasks import task_command
    from pipeline.storage.tasks import TASKS

    return {**COMMANDS, **{name: task_command(name) for name in TASKS.usable()}}
