"""Who is to blame, in one place. Every error a user can meet is one of these; each message names the place and the remedy."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message that says something, or the error's name."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


class StepvalueError(Exception):
    """Base of all errors this package raises on purpose. `exit_code` is what the command line returns."""

    exit_code = 1


class UsageError(StepvalueError):
    """The command line or a setting is wrong: nothing was started."""

    exit_code = 2


class InputError(StepvalueError):
    """The input as a whole cannot be used (a single bad row becomes a `Reject` instead)."""

    exit_code = 2


class PolicyError(StepvalueError):
    """The policy model cannot be loaded here: missing model, missing device, too little memory."""


class EngineDied(StepvalueError):
    """The engine stopped working during a run. The run directory holds what was finished: start the command again."""


class WorkerLost(EngineDied):
    """A worker was taken away with its machine: nobody's fault, and no attempt is counted."""


class ClusterError(StepvalueError):
    """No Ray cluster where one was named, or it lacks the resources asked for."""


class Interrupted(StepvalueError):
    """A signal asked the run to stop; the same command goes on with what is owed."""

    exit_code = 75


class BudgetSpent(StepvalueError):
    """A run has cost what its plan allows; the same command with a larger limit goes on with what is owed."""


class RunConflict(StepvalueError):
    """The run directory belongs to another run; nothing in it was touched."""

    exit_code = 2


class StoreError(StepvalueError):
    """The run directory cannot be written, or a file in it is damaged."""


class Unreachable(StoreError):
    """The store of the run directory does not answer or lets nobody in: what it holds is neither known nor damaged."""


class Absent(StoreError):
    """A name in the run directory that is not there."""


class Damaged(StoreError):
    """A file in the run directory that is not what was committed."""


class PluginError(StepvalueError):
    """An installed plug-in failed while it was used. The run directory holds what had come in before."""
