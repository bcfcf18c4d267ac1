"""Formats the status of a run, as one line or as named items, and numbers, counted nouns, durations and shares. Pure."""

from collections.abc import Iterator, Sequence
from math import floor, log10

from pipeline.core.progress import Pace, Status, Verdicts
from pipeline.core.records import ReadingKind, Totals

_MOST_DIGITS = 9


WHY_UNSCORED = {
    "too_long": "not all steps fit into the model",
    "unreadable": "the model's answer names no verdict for a step",
    "failed": "the engine could not answer",
}
"""Why steps have no score, in words; see `StepScores.fault`."""
WHY_NO_VERDICT = {
    ReadingKind.UNPARSEABLE: "it is not in the wanted form",
    ReadingKind.OUT_OF_RANGE: "it names a step that the chain does not have",
    ReadingKind.CUT: "the token limit ended the critique before it",
    ReadingKind.TOO_LONG: "the chain does not fit into the judge's context",
    ReadingKind.FAILED: "the engine could not answer",
}
"""Why a critique has no verdict, in words."""
WHY_UNCHECKED = {
    "deadline": "the verifier took longer than verifier.deadline_seconds",
    "memory": "the verifier needed more than verifier.memory_mib",
    "crashed": "the verifier's process died of the step, or the verifier failed",
    "too_long": "the step is longer than verifier.most_characters",
    "lost": "no worker survived the chain",
}
"""Why a verifier has not looked at a step, in words; see `verifiers.base.Fault`."""


def status_items(status: Status, pace: Pace, price: float | None) -> Iterator[tuple[str, str]]:
    """The known parts of a status as pairs (name, text). `price`: cost of one device for one hour."""
    if status.units:
        yield "units", f"{status.units_done:,} of {status.units:,} finished"
    if status.prefixes_decided:
        yield "prefixes", f"{status.prefixes_decided:,} of {status.prefixes:,} done, of the units begun"
    if status.rollouts or status.rollouts_before:
        yield status.counted, _rollouts(status)
    if pace.overall is not None and status.tokens:
        yield "speed", f"{pace.recent or 0:,.0f} tokens/s, {pace.overall or 0:,.0f} since the start"
        if status.share_of_bound is not None:
            yield "hardware", f"{format_percent(status.share_of_bound)} of the hardware's upper bound"
    if status.rollouts or status.load.running or status.load.waiting:
        yield "requests", _requests(status)
    if status.verdicts != Verdicts():
        yield "verdicts", format_verdicts(status.verdicts)
    if status.rollouts and status.verdicts != Verdicts():
        cut = format_percent(status.verdicts.truncated / status.rollouts)
        yield "cut", f"{cut} of rollouts, by sampling.max_tokens"
    if price is not None and status.device_hours:
        yield "money", format_cost(status.device_hours, price)
    if pace.seconds_left is not None:
        yield "left", f"about {format_duration(pace.seconds_left)}"


def status_line(status: Status, pace: Pace, seconds: float, price: float | None) -> str:
    """The status as one line of a log: the parts that change what a reader does. `seconds`: how long the current stage has
    lasted."""
    shown = ("units", status.counted, "speed", "money", "left")
    items = [(name, words) for name, words in status_items(status, pace, price) if name in shown]
    parts = [words if name == "speed" else f"{name} {words}" for name, words in items]
    return " | ".join([f"{printable(status.stage)} {format_duration(seconds)}", *parts])


def format_verdicts(verdicts: Verdicts) -> str:
    """The shares of the verdicts in percent of all rollouts. Verdicts that did not occur are left out, except the first two."""
    counts = {
        "correct": verdicts.correct,
        "incorrect": verdicts.incorrect,
        "no answer": verdicts.no_answer,
        "ungraded": verdicts.ungraded,
        "aborted": verdicts.aborted,
    }
    total = sum(counts.values()) or 1
    always = ("correct", "incorrect")
    return ", ".join(
        f"{format_percent(count / total)} {name}" for name, count in counts.items() if count or name in always
    )


def format_cost(device_hours: float, price: float) -> str:
    """The cost of the device hours, in the currency of the price per hour."""
    return f"{format_number(device_hours * price, 2)} for {format_number(device_hours, 2)} device hours"


def format_number(number: float, digits: int = 0) -> str:
    """A number with commas and `digits` decimals; below 1, as many decimals as show its first two significant digits."""
    if digits and 0 < abs(number) < 1:
        digits = min(_MOST_DIGITS, 1 - floor(log10(abs(number))))
    return f"{number:,.{digits}f}"


def format_range(low: float, high: float, digits: int = 0) -> str:
    """A range of numbers; a single number if both ends are equal."""
    return (
        format_number(low, digits) if low == high else f"{format_number(low, digits)} to {format_number(high, digits)}"
    )


def format_span(first: int, last: int | None) -> str:
    """A range of counts, such as `5-8`, or `17+` without a last one; a single one if both are equal."""
    if last is None:
        return f"{first:,}+"
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"


def format_count(count: int, noun: str) -> str:
    """A count with its noun in the singular or in a regular plural: `1 unit`, `1,000 prefixes`."""
    plural = f"{noun}es" if noun.endswith(("s", "x", "ch")) else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def format_work(totals: Totals) -> str:
    """What a run has labelled."""
    promoted = f" ({totals.promoted:,} of them promoted by grow)" if totals.promoted else ""
    return (
        f"{format_count(totals.problems, 'problem')}, {format_count(totals.chains, 'chain')}{promoted}, "
        f"{format_count(totals.prefixes, 'distinct prefix')}"
    )


def format_verdict_counts(totals: Totals) -> str:
    """What became of all rollouts, as a sum."""
    text = f"{totals.correct:,} correct + {totals.incorrect:,} incorrect + {totals.no_answer:,} without an answer"
    aborted = f" + {totals.aborted:,} aborted" if totals.aborted else ""
    return f"{text} + {totals.ungraded:,} ungraded{aborted}"


def format_unfinished(unfinished: int, units: int) -> str:
    """How many units of a run are unfinished, as a clause."""
    return f"{unfinished:,} of {format_count(units, 'unit')} {'is' if unfinished == 1 else 'are'} unfinished"


def unscored_text(*, scored: int, unscored: int) -> str:
    """How many beginnings of chains have no score in a search, and what follows; empty where all have one."""
    if not unscored:
        return ""
    if not scored:
        return f"none of {format_count(unscored, 'beginning')} of chains has a score: nothing steered the search"
    share = format_percent(unscored / (scored + unscored))
    return f"{unscored:,} of {scored + unscored:,} beginnings of chains have none ({share}): they rank last"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def first_of(names: Sequence[str]) -> str:
    """The first name, and the number of further names."""
    return names[0] + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")


def format_duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def format_percent(share: float) -> str:
    """A share in percent, with at least two significant digits."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def plain_lines(text: str) -> str:
    """The text without the control characters that a terminal would execute, but for line ends."""
    return "".join(character if character.isprintable() or character == "\n" else "�" for character in text)


def printable(text: str) -> str:
    """The text as one line, without the control characters that a terminal would execute."""
    return "".join(character if character.isprintable() else "�" for character in " ".join(text.split()))


def _rollouts(status: Status) -> str:
    # Most estimators ask for more rollouts in each round, so the expected number grows.
    most = f", at most {status.rollouts_most:,}" if status.rollouts_most > status.rollouts_expected else ""
    expected = f" of {status.rollouts_expected:,} expected so far{most}" if status.rollouts_expected else ""
    before = f", {status.rollouts_before:,} from earlier starts" if status.rollouts_before else ""
    return f"{status.rollouts:,}{expected}{before}"


def _requests(status: Status) -> str:
    grading = f", {status.load.grading:,} waiting for the grader" if status.load.grading else ""
    scoring = f", {status.load.scoring:,} waiting for the scorer" if status.load.scoring else ""
    return f"{status.load.running:,} running, {status.load.waiting:,} waiting{grading}{scoring}"
