"""The experiment's results as text. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tests.loop.spread import Components, Mean, components, mean_of

Result = Mapping[str, Any]
Votes = Mapping[str, Sequence[float]]
WAYS = ("best last", "best min", "best product", "best mean", "weighted last", "weighted product")
"""How one of the candidates is chosen by scores."""
SIZES = (4, 8, 16)
LARGEST = 16


def of_arm(results: Sequence[Result], arm: str) -> list[Result]:
    """One result per seed: trainings on the same chains with other seeds are left out."""
    return [each for each in results if each["arm"] == arm and each["seed"] == each["training_seed"]]


def arms_table(results: Sequence[Result], votes: Votes, arms: Sequence[str]) -> Iterator[str]:
    """Accuracy among all candidates of each way to choose: mean over seeds +- its standard error."""
    majority, bound = (float(np.mean(votes[f"{name} {LARGEST}"])) for name in ("majority", "bound"))
    yield f"right among {LARGEST} candidates; random {np.mean(votes['random']):.3f}, majority {majority:.3f}, bound {bound:.3f}"
    yield _line("arm", ["seeds", "chains", "tokens", *WAYS, "step AUC", "last AUC"])
    for arm in arms:
        found = of_arm(results, arm)
        if found:
            ways = [_shown(_means(found, f"{way} {LARGEST}")) for way in WAYS]
            aucs = [f"{np.mean([each[name] for each in found]):.3f}" for name in ("step_auc", "last_auc")]
            sizes = [f"{np.mean([each[name] for each in found]):,.0f}" for name in ("chains", "tokens")]
            yield _line(arm, [str(len(found)), *sizes, *ways, *aucs])


def ceiling_line(by_arithmetic: Mapping[str, float]) -> Iterator[str]:
    """`by_arithmetic`: like `means` of a result, with the share of the steps that are right so far as the score."""
    yield "a perfect checker of steps, by the number of candidates: " + ", ".join(
        f"{n}: {by_arithmetic[f'best mean {n}']:.3f}" for n in SIZES
    )


def leads_table(results: Sequence[Result], votes: Votes, arm: str) -> Iterator[str]:
    """How far ahead of majority vote each way to choose is, by the number of candidates. With all candidates, also the standard
    error from the problems, which all seeds have in common, and how many errors of both kinds the lead is above 0."""
    found = of_arm(results, arm)
    yield f"{arm}: accuracy minus majority vote, mean of {len(found)} seeds +- standard error over seeds"
    yield _line("n", list(WAYS))
    for n in SIZES if found else ():
        majority = float(np.mean(votes[f"majority {n}"]))
        yield _line(
            str(n), [_shown(mean_of([each["means"][f"{way} {n}"] - majority for each in found]), "+") for way in WAYS]
        )
    leads = [_lead(found, votes, f"{way} {LARGEST}") for way in WAYS if found]
    yield _line(f"{LARGEST}: error from the problems", [f"+-{of_problems:.3f}" for _, of_problems in leads])
    both = [lead.value / float(np.hypot(lead.error, of_problems)) for lead, of_problems in leads]
    yield _line(f"{LARGEST}: lead in errors of both", [f"{times:+.1f}" for times in both])


def _lead(found: Sequence[Result], votes: Votes, way: str) -> tuple[Mean, float]:
    """Over majority vote, with its error over seeds, and the error from the problems."""
    ahead = np.array([each["by_problem"][way] for each in found]) - np.array(votes[f"majority {LARGEST}"])
    of_problems = ahead.mean(axis=0).std(ddof=1) / ahead.shape[1] ** 0.5
    return mean_of(ahead.mean(axis=1).tolist()), float(of_problems)


def differences_table(results: Sequence[Result], arm: str, others: Sequence[str]) -> Iterator[str]:
    """What each other arm gains over `arm`, seed by seed."""
    own = {each["seed"]: each for each in of_arm(results, arm)}
    yield f"right among {LARGEST}, minus {arm} on the same seeds"
    yield _line("arm", ["seeds", *WAYS])
    for other in others:
        pairs = [(each, own[each["seed"]]) for each in of_arm(results, other) if each["seed"] in own]
        if pairs:
            gains = [
                mean_of([this["means"][f"{way} {LARGEST}"] - base["means"][f"{way} {LARGEST}"] for this, base in pairs])
                for way in WAYS
                if way in {name.rpartition(" ")[0] for name in pairs[0][0]["means"]}
            ]
            yield _line(other, [str(len(pairs)), *(_shown(gain, "+") for gain in gains)])


def spread_table(results: Sequence[Result], votes: Votes, arm: str, problems: int) -> Iterator[str]:
    """What the spread of one run comes from, for accuracy and for the lead over majority vote."""
    across = of_arm(results, arm)
    within = [each for each in results if each["arm"] == arm and each["seed"] == 0]
    yield (
        f"{arm}: standard deviation of one run of {problems} problems, from {len(across)} seeds and {len(within)} trainings "
        "on the chains of one"
    )
    yield _line("", ["training", "learned from", "chosen for", "in all"])
    majority = np.array(votes[f"majority {LARGEST}"])
    for way in WAYS[:1] + WAYS[4:5] if len(across) > 1 and len(within) > 1 else ():
        name = f"{way} {LARGEST}"
        for text, offset in ((name, np.zeros(len(majority))), (f"{name} - majority", majority)):
            parts = components(
                [each["means"][name] for each in across],
                [each["means"][name] for each in within],
                np.array([each["by_problem"][name] for each in across]) - offset,
                problems,
            )
            yield _line(text, [f"{value:.3f}" for value in _parts(parts)])


def _parts(found: Components) -> tuple[float, ...]:
    return found.training, found.learned_from, found.chosen_for, found.total


def _means(found: Sequence[Result], name: str) -> Mean | None:
    return mean_of([each["means"][name] for each in found]) if name in found[0]["means"] else None


def _shown(mean: Mean | None, sign: str = "") -> str:
    if mean is None:
        return "-"
    return f"{mean.value:{sign}.3f}" + ("" if np.isnan(mean.error) else f" +-{mean.error:.3f}")


def _line(name: str, cells: Sequence[str]) -> str:
    return f"  {name:<34}" + "".join(f"{cell:>17}" for cell in cells)
