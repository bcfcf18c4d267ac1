"""`report` of a run of `search`: what it shows, its page, and the lines in the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from pipeline.analysis.browser.searches import build_search_browser
from pipeline.analysis.searches.figures import CoveragePoint, RunFigures, SearchFigures, run_figures
from pipeline.analysis.searches.read import finished_searches, search_figures, search_run
from pipeline.analysis.searches.sentences import UNREADABLE, claim_sentences, search_lines, trust_sentences
from pipeline.analysis.searches.trees import searched_problems
from pipeline.analysis.settings import ReportConfig
from pipeline.core.errors import UsageError
from pipeline.core.formatting import first_of, format_count, format_number, format_percent, unscored_text
from pipeline.core.records import UNGRADED, Verdict
from pipeline.core.tables import CANDIDATES
from pipeline.display.document import Figure, Inset, Page, Section, Table, sentence
from pipeline.display.numbers import number, percents
from pipeline.display.page import foot, format_time, html
from pipeline.engines.registry import made_up_text
from pipeline.searches.base import Stop
from pipeline.storage.location import last_part
from pipeline.storage.starts import Starts, read_starts
from pipeline.storage.storage import Storage
from pipeline.storage.stored_search import StoredSearch, stored_search

KIND = "search"
STOPPED = {
    Stop.DONE: "all was sampled that the settings ask for",
    Stop.ACCEPTED: "search.accept was reached",
    Stop.NO_CHAIN: "no chain could be sampled",
    Stop.FAILED: "the problem killed engines",
}
"""Why a search ended, in words."""
_SEED = 0
"""Of the bootstrap. A page that is written again has the same figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRunData:
    """What is shown of a run; it is about finished units. `searches`: see `finished_searches`. `figures`: None while no
    unit is finished. `scorer`: identity of the scorer, empty where no problem has a candidate. `made_up`: why the
    steps are no evidence; empty where they are."""

    stored: StoredSearch
    searches: pl.DataFrame
    totals: SearchFigures
    figures: RunFigures | None
    scorer: str
    starts: Starts
    made_up: str

    @property
    def unfinished(self) -> str:
        """How many units are not finished, in words; empty where all are."""
        return self.stored.owed if self.stored.unfinished else ""

    def lines(self) -> Iterator[str]:
        """The run in a few lines."""
        if self.made_up:
            yield f"policy    {self.made_up}"
        if self.figures is not None:
            yield from search_lines(self.totals, self.figures)


def load_search_data(stored: StoredSearch) -> SearchRunData:
    """Raises StoreError for a missing or damaged file."""
    searches = finished_searches(stored)
    begun = searches.height > 0
    models = [str(each) for frame in stored.frames(CANDIDATES, ["model"]) for each in frame["model"].unique()]
    return SearchRunData(
        stored=stored,
        searches=searches,
        totals=search_figures(stored, searches),
        figures=run_figures(search_run(stored, "this run", searches), _SEED) if begun else None,
        scorer=", ".join(dict.fromkeys(models)),
        starts=read_starts(stored.storage),
        made_up=made_up_text(stored.identity, "steps") if begun else "",
    )


def search_report(storage: Storage, config: ReportConfig) -> tuple[bytes, list[str]]:
    """The page of a run of `search`, with at most `config.chains` of its problems, and the lines to print. An unfinished run
    has those of its finished units.

    Raises UsageError for a plan, and for a run that cannot be read; StoreError for a damaged one.
    """
    if config.planned is not None:
        raise UsageError(f"planned={config.planned}: a run of `search` has no plan; leave it out")
    stored = stored_search(storage, partial=True)
    found = load_search_data(stored)
    total = found.searches.height
    browser = build_search_browser(searched_problems(stored), total, config.chains) if total and config.chains else None
    units = [f"units     {found.unfinished}"] if found.unfinished else []
    page = search_page(found, browser, foot("report", {"run_dir": config.run_dir[0]}))
    return html(page), [*units, *found.lines()]


def search_page(found: SearchRunData, browser: Inset | None, made: tuple[str, ...]) -> Page:
    """The page. `browser`: None where no problem is finished."""
    sections: list[Section] = []
    if found.figures is not None:
        sections = [_answers(found.searches), *_trust(found.figures), _cost(found.searches, found.totals)]
    return Page(
        title=last_part(found.stored.storage.run_dir),
        kind=KIND,
        verdict=_verdict(found),
        details=_details(found),
        notes=tuple(_notes(found)),
        figures=tuple(_figures(found)),
        sections=tuple(sections),
        inset=browser,
        foot=made,
    )


def _details(found: SearchRunData) -> tuple[tuple[str, str], ...]:
    identity = found.stored.identity

    def setting(key: str) -> str:
        return "-" if identity.get(key) is None else str(identity[key])

    chains = "" if found.figures is None else f", {format_number(found.figures.summary.chains, 1)} chains per problem"
    details = [
        ("state", found.unfinished or "finished"),
        ("method", f"{setting('search.method')}, n = {setting('search.n')}{chains}"),
        ("aggregation", setting("search.aggregation")),
        ("policy", setting("policy.model") if identity.get("policy.model") else setting("policy.kind")),
        ("scorer", found.scorer or "-"),
    ]
    if identity.get("search.accept") is not None:
        details.append(("accept", setting("search.accept")))
    if identity.get("calibration") is not None:
        details.append(("scores", "calibrated: probabilities"))
    if starts := found.starts.starts:
        first, last = starts[0], max(starts, key=lambda start: start.at)
        hosts = ", ".join(dict.fromkeys(start.host for start in starts))
        details += [
            ("when", f"{format_time(first.began_at)} to {format_time(last.at)} UTC"),
            ("starts", f"{len(starts)} on {hosts}"),
        ]
    return tuple(details)


def _verdict(found: SearchRunData) -> str:
    """What was searched, whether to trust it, and what to do next."""
    said = []
    if found.figures is not None:
        accuracy = found.figures.summary.accuracy
        are = "are searched"
        if accuracy.value is not None:
            are += f", and {percents(accuracy)} of the choices that can be graded are right"
        said.append(f"{format_count(found.totals.problems, 'problem')} {are}.")
    if found.unfinished:
        done = f"everything below is about the other {len(found.stored.units) - found.stored.unfinished:,}"
        rest = "there is no result yet" if found.figures is None else done
        said.append(f"{found.unfinished}: {rest}. Finish the run with `search`, then write this page again.")
    if found.made_up:
        said.append(sentence(found.made_up))
    elif found.figures is not None and not found.unfinished:
        said.append("Compare it at equal tokens with other searches by `select searches=[...]`.")
    return " ".join(said)


def _notes(found: SearchRunData) -> Iterator[str]:
    if words := unscored_text(scored=found.totals.scored, unscored=found.totals.unscored):
        yield f"Scores: {words}."
    if found.figures is not None:
        yield from map(sentence, claim_sentences(found.figures.summary))
    if found.starts.damaged:
        yield sentence(f"{first_of(found.starts.damaged)} cannot be read")


def _figures(found: SearchRunData) -> list[Figure]:
    totals, figures = found.totals, found.figures
    if figures is None:
        return []
    chains = [f"{totals.chosen:,} with a chosen chain"]
    if totals.without_chain:
        chains.append(f"{totals.without_chain:,} without any chain")
    if totals.cut:
        chains.append(f"{format_count(totals.cut, 'chosen chain')} cut by a limit")
    shown = [("Problems", format_number(totals.problems), "; ".join(chains)), _accuracy(figures)]
    if (trust := figures.coverage.trust) is not None:
        note = f"{trust.trusted:,}"
        if trust.accuracy.value is not None:
            note += f"; of {trust.claimed:,} that can be graded {percents(trust.accuracy)} are right"
        shown.append(("Trusted", format_percent(trust.share.value or 0.0), note))
    prompts = f"prompts of {_prompt_tokens(found.searches):,}"
    note = f"{totals.policy_tokens / totals.problems:,.0f} per problem; {prompts}"
    shown.append(("Policy tokens", format_number(totals.policy_tokens), note))
    if totals.scorer_tokens:
        cached = format_percent(1 - totals.scorer_computed / totals.scorer_tokens)
        note = f"computed of {totals.scorer_tokens:,} read; {cached} from caches"
        shown.append(("Scorer tokens", format_number(totals.scorer_computed), note))
    return [Figure(name=name, value=value, reading=reading) for name, value, reading in shown]


def _accuracy(figures: RunFigures) -> tuple[str, str, str]:
    accuracy = figures.summary.accuracy
    if accuracy.value is None:
        return "Accuracy", "not claimed", "no answer is known, or none can be graded"
    note = f"of {format_count(figures.summary.searches - figures.summary.unclaimed, 'known answer')}"
    if accuracy.low is not None and accuracy.high is not None:
        note = f"95 % interval {100 * accuracy.low:.0f} to {100 * accuracy.high:.0f} %; {note}"
    return "Accuracy", format_percent(accuracy.value), note


def _answers(searches: pl.DataFrame) -> Section:
    return Section(
        anchor="answers",
        heading="Answers",
        intro="What became of each problem. An answer that cannot be graded, and one of a problem without a known answer, "
        "is open: accuracy is not claimed for it. A problem without a chain, and a chosen chain without an answer, "
        "are wrong where the answer is known.",
        tables=(_outcome_table(searches), _stop_table(searches)),
    )


def _outcome_table(searches: pl.DataFrame) -> Table:
    known, unreadable, verdict, answer = map(pl.col, ("known", "unreadable", "verdict", "final_answer"))
    chosen = pl.col("chosen").is_not_null()
    without_verdict = known & verdict.is_null() & chosen
    rows = (
        ("right", verdict == Verdict.CORRECT),
        ("wrong", verdict == Verdict.INCORRECT),
        ("no answer stated", (verdict == Verdict.NO_ANSWER) | (~known & answer.is_null() & chosen)),
        ("cannot be graded", known & verdict.is_in([each.value for each in UNGRADED])),
        (UNREADABLE, without_verdict & unreadable),
        ("not graded: the policy could not end the chain", without_verdict & ~unreadable),
        ("no known answer", ~known & answer.is_not_null()),
        ("no chain", ~chosen),
    )
    counted = [(name, searches.filter(which.fill_null(value=False)).height) for name, which in rows]
    return Table(
        heads=("chosen answer", "problems", "share"),
        rows=tuple((name, f"{count:,}", format_percent(count / searches.height)) for name, count in counted if count),
    )


def _stop_table(searches: pl.DataFrame) -> Table:
    stopped = searches.group_by("stopped").agg(
        problems=pl.len(),
        tokens=(pl.col("policy_tokens") + pl.col("scorer_computed")).mean(),
        confidence=pl.col("confidence").mean(),
    )
    order = [stop.value for stop in Stop]
    rows = sorted(stopped.iter_rows(), key=lambda row: order.index(row[0]) if row[0] in order else len(order))
    words = {stop.value: said for stop, said in STOPPED.items()}
    return Table(
        caption="Why searches ended.",
        heads=("reason", "problems", "tokens per problem", "mean confidence"),
        rows=tuple(
            (words.get(stop, stop), f"{problems:,}", f"{spent:,.0f}", "-" if sure is None else f"{sure:.2f}")
            for stop, problems, spent, sure in rows
        ),
    )


def _trust(figures: RunFigures) -> list[Section]:
    found = figures.coverage
    said = list(trust_sentences(found.trust, figures.accept, calibrated=figures.calibrated)) if found.trust else []
    claimed = f"accuracy is that of {format_count(found.searches, 'choice')} that can be graded"
    if not found.points and not said:
        return []
    return [
        Section(
            anchor="trust",
            heading="Which to trust",
            intro=" ".join(map(sentence, (*said, claimed))),
            tables=(_coverage_table(found.points),) if found.points else (),
        )
    ]


def _coverage_table(points: Sequence[CoveragePoint]) -> Table:
    return Table(
        caption="Accuracy by coverage, with 95 % intervals over problems: of the choices with the most confidence. Where fewer "
        "choices are more often right, confidence says which ones to trust, and which problems to leave to people.",
        heads=("coverage", "choices", "accuracy", "interval", "confidence from"),
        rows=tuple(
            (
                format_percent(point.coverage),
                f"{point.used:,}",
                number(point.accuracy.value, 3),
                "" if point.accuracy.low is None else f"{point.accuracy.low:.3f} to {point.accuracy.high:.3f}",
                number(point.least, 3),
            )
            for point in points
        ),
    )


def _cost(searches: pl.DataFrame, totals: SearchFigures) -> Section:
    seconds = sorted(searches["seconds"].to_list())
    rows = (
        ("tokens of the policy", totals.policy_tokens),
        ("prompt tokens of the policy", _prompt_tokens(searches)),
        ("tokens that the scorer read", totals.scorer_tokens),
        ("of these computed", totals.scorer_computed),
        ("tokens of the policy, and computed by the scorer", totals.policy_tokens + totals.scorer_computed),
    )
    return Section(
        anchor="cost",
        heading="Cost",
        intro="Tokens of the policy are those that it wrote, also those after a step's end. Of the scorer, those count that it "
        "computed: prefixes that it has in its cache cost nothing. A problem took "
        f"{median(seconds):,.1f} seconds in the median, and {seconds[-1]:,.1f} at most.",
        tables=(
            Table(
                heads=("tokens", "all", "per problem"),
                rows=tuple((name, f"{count:,}", f"{count / totals.problems:,.0f}") for name, count in rows),
            ),
        ),
    )


def _prompt_tokens(searches: pl.DataFrame) -> int:
    return int(searches["policy_prompt_tokens"].sum())
