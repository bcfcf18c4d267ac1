"""The commands: what each is called, which settings it takes, how it explains itself, and what it runs.

What a command loads, it loads when it runs: Ray and the readers are slow to load, and a wrong setting should be told at once.
"""

from pipeline.commands.agree import AGREE
from pipeline.commands.command import Command
from pipeline.commands.export import EXPORT
from pipeline.commands.grade import GRADE
from pipeline.commands.label import LABEL
from pipeline.commands.plan import PLAN
from pipeline.commands.report import REPORT
from pipeline.commands.select import SELECT
from pipeline.commands.status import STATUS
from pipeline.commands.stored import AUDIT, REGRADE, RELABEL
from pipeline.commands.train import SCORE, TRAIN

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (PLAN, LABEL, STATUS, RELABEL, REGRADE, AUDIT, REPORT, EXPORT, TRAIN, SCORE, SELECT, AGREE, GRADE)
}
