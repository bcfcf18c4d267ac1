"""How chains stand in prompts. Pure."""

from collections.abc import Sequence

from pipeline.core.records import ChainText


def tagged_steps(steps: Sequence[str], base: int) -> str:
    """The steps, each between `<step_K>` and `</step_K>`. `base`: the number of the first one."""
    return "\n\n".join(f"<step_{number}>\n{step}\n</step_{number}>" for number, step in enumerate(steps, start=base))


def numbered_steps(steps: Sequence[str], base: int) -> str:
    """The steps, each after `Step K: `. `base`: the number of the first one."""
    return "\n".join(f"Step {number}: {step}" for number, step in enumerate(steps, start=base))


def shown_answer(chain: ChainText) -> str:
    """The known answers of a chain's problem, for a judge that may see them."""
    return " or ".join(chain.golds) or "(unknown)"
