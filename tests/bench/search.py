"""The methods of search in the tree world, where the value of every prefix is known: accuracy with scorers of several AUCs, and
the gain over best-of-n at equal tokens.

The trees have other seeds than those on which defaults were chosen.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist

from pipeline.scorers.oracle import logit
from tests.bench.loop.search_table import shown
from tests.bench.search_tree import SIMULATORS, Problems
from tests.searches.worlds import WorldKind

KIND = WorldKind(seed=7, depth=6, branching=3, mean=0.3)
BEST = 0.9
"""The AUC for which a gain over best-of-n is wanted."""
SCORERS = {
    **{f"of AUC {auc:g} over inner steps": replace(KIND, auc=auc) for auc in (0.7, 0.8, BEST)},
    f"of AUC {BEST:g} that knows ends no better than steps": replace(KIND, auc=BEST, least=0.1),
}
"""All but the last one know nearly surely whether the end of a chain is right, because its value is 0 or 1."""
SIZES = (4, 16, 64)
PROBLEMS = 500
WANTED_METHODS = 2
ERRORS = 2.0
"""A machine and its simulator should differ by at most this many standard errors."""


def search() -> None:
    print(
        f"\nsearch: {PROBLEMS} problems of the tree world, depth {KIND.depth}, {KIND.branching} next steps, mean value "
        f"{KIND.mean:g}; a byte is a token; 95 % intervals over problems"
    )
    apart: list[float] = []
    for name, kind in SCORERS.items():
        print(f"\nscorer {name}; of ends: {end_auc(kind):.3f}")
        ahead: dict[str, int] = {}
        for line in lines(Problems(kind, PROBLEMS), apart, ahead):
            print(line, flush=True)
        print(
            f"  ahead of best-of-n at equal tokens by more than the interval, at how many n: "
            f"{', '.join(f'{method} {count}' for method, count in ahead.items())}; wanted {WANTED_METHODS} methods"
        )
    within = sum(abs(each) <= ERRORS for each in apart)
    print(
        f"\n{within} of {len(apart)} machines differ from their simulator by at most {ERRORS:g} standard errors, expected "
        f"{0.954 * len(apart):.0f}; largest {max(map(abs, apart)):.1f}"
    )


def lines(problems: Problems, apart: list[float], ahead: dict[str, int]) -> Iterator[str]:
    """The table of a scorer. Adds to `apart` and `ahead`."""
    yield (
        f"  {'method':<11}{'n':>3}{'right':>22}{'policy':>8}{'scorer':>8}{'in all':>8}{'apart/SE':>10}"
        f"{'k':>7}{'gain over best of k':>24}"
    )
    for n in SIZES:
        for name, exact in problems.exact(n).items():
            yield (
                f"  {name:<11}{n:>3}{shown(exact.right):>22}{exact.policy:>8.0f}{exact.scorer:>8.0f}"
                f"{exact.policy + exact.scorer:>8.0f}"
            )
        for name in SIMULATORS:
            found = problems.searched(name, n)
            apart.append(found.apart / found.error if found.error else 0.0)
            ahead[name] = ahead.get(name, 0) + int(found.gain.low is not None and found.gain.low > 0)
            yield (
                f"  {name:<11}{n:>3}{shown(found.right):>22}{found.policy:>8.0f}{found.scorer:>8.0f}"
                f"{found.policy + found.scorer:>8.0f}{apart[-1]:>10.1f}{found.k:>7.1f}{shown(found.gain, '+'):>24}"
            )


def end_auc(kind: WorldKind) -> float:
    """P(the end of a right chain scores higher than that of a wrong one)."""
    apart = logit(1 - kind.least) - logit(kind.least)
    return NormalDist().cdf(apart / (kind.sigma * math.sqrt(2)))
