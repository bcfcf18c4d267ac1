"""How reliable Monte Carlo and each witness are, as rows of texts: what each says where there is an error, and where there
is none. Pure.

Little can be known of kinds of chains that the run hardly has, such as wrong answers without an error, so these have no row.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from pipeline.consensus.blocks import Outcome
from pipeline.consensus.cells import Cell
from pipeline.consensus.confusion import Way
from pipeline.consensus.learning import Learned
from pipeline.consensus.parameters import ERROR, FREE
from pipeline.core.formatting import format_count

FEWEST_CHAINS = 5.0
"""Expected chains of a kind that has a row."""
FEW_CHAINS = 300
"""With fewer chains the priors weigh as much as the run."""
MONTE_CARLO = "Monte Carlo"
_TRUTHS = {ERROR: "an error", FREE: "no error"}
_ANSWERS = {Outcome.RIGHT: "right", Outcome.WRONG: "wrong", Outcome.UNKNOWN: "not graded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """What `witness` says of chains with an answer (right, wrong, not graded) and a truth (an error, no error). `chains`: how
    many of them are expected. `says`: percent with a 95 % interval by what it says; of chains with an error the right place,
    an earlier or a later one, or none."""

    witness: str
    answer: str
    truth: str
    chains: int
    says: Mapping[Way, str]


def reliabilities(learned: Learned) -> list[Reliability]:
    """The rows of Monte Carlo, then those of each witness."""
    return list(_rows(learned))


def _rows(learned: Learned) -> Iterator[Reliability]:
    for (witness, outcome, truth), cells in groupby(
        learned.cells, lambda cell: (cell.witness, cell.outcome, cell.truth)
    ):
        of_kind = list(cells)
        if of_kind[0].chains >= FEWEST_CHAINS:
            yield Reliability(
                witness=witness or MONTE_CARLO,
                answer=_ANSWERS[outcome],
                truth=_TRUTHS[truth],
                chains=round(of_kind[0].chains),
                says={cell.way: _text(cell) for cell in of_kind},
            )


def _text(cell: Cell) -> str:
    low, high = f"{100 * cell.low:.0f}", f"{100 * cell.high:.0f}"
    return f"{100 * cell.value:.0f} %" + ("" if low == high else f" ({low}-{high})")


def reliability_lines(learned: Learned) -> list[str]:
    """The same as lines for a terminal."""
    lines = [
        f"learned   from {format_count(learned.learned_from, 'chain')}: where Monte Carlo and each witness place the first "
        "error, with 95 % intervals. Of Monte Carlo: where it sees the value fall, whatever its labels are"
    ]
    if learned.learned_from < FEW_CHAINS:
        lines.append(
            f"          fewer than {FEW_CHAINS} chains: much of this is what is usual, and not learned from the run"
        )
    for row in _rows(learned):
        says = ", ".join(f"{WORDS[way]} {text}" for way, text in row.says.items())
        about = f"{row.truth}, {row.answer} answer, about {format_count(row.chains, 'chain')}"
        lines.append(f"          {row.witness} ({about}): {says}")
    for witness, said in learned.says_one_thing.items():
        lines.append(f"          {witness} says of nearly all chains: {said}; it is of no use")
    if not learned.converged:
        lines.append("          learning did not end: these figures, and the labels, may be off")
    return lines


WORDS = {
    Way.EXACT: "there",
    Way.EARLY: "earlier",
    Way.LATE: "later",
    Way.NONE: "none",
    Way.ALARM: "some step",
}
"""What a witness says, in words."""
