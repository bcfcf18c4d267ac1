"""The command `search`: lets a process reward model steer the policy."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, imported, interruptible, write_lines
from pipeline.cli.options import without_model
from pipeline.cli.workers import Work, cost_lines, ending_lines
from pipeline.config.search import SearchRunConfig
from pipeline.core.formatting import format_count, format_number, format_percent, unscored_text

if TYPE_CHECKING:
    from pipeline.analysis.searches.figures import SearchFigures
    from pipeline.core.progress import Summary
    from pipeline.runtime.chain_run.estimate import Estimate

_OR_WHOLE_CHAINS = ", or choose a method that scores whole chains alone, such as best_of_n"
SLOW_SHARE, SLOW_SECONDS = 0.5, 1.0
"""The lines say that the scorer is slow where searches wait for it more than this share of their waiting, and each problem more
than these seconds in all."""


def _estimated(config: SearchRunConfig, plan: "Estimate") -> Iterator[str]:
    policy, scorer = (
        sum(plan.column("searches", name)) / plan.sampled for name in ("policy_tokens", "scorer_computed")
    )
    yield f"{format_count(plan.sample.chains, 'problem')} to search by {config.search.method} with n={config.search.n}"
    yield (
        f"tokens    {policy:,.0f} of the policy and {scorer:,.0f} of the scorer for a problem on average, in a sample of "
        f"{plan.sampled:,}"
    )
    yield f"models    {plan.model}"
    yield from cost_lines(plan, "problem")


def _ended(config: SearchRunConfig, found: "Summary") -> bool:
    from pipeline.analysis.searches.read import finished_searches, search_figures
    from pipeline.searches.registry import search_for
    from pipeline.storage.location import storage_at
    from pipeline.storage.stored_search import stored_search

    storage = storage_at(found.run_dir)
    stored = stored_search(storage)
    figures = search_figures(stored, finished_searches(stored))
    lines = [
        f"searched {format_count(figures.problems, 'problem')} by {config.search.method} with n={config.search.n}: "
        f"{found.run_dir}/searches",
        f"chains: {format_number(figures.candidates / max(1, figures.problems), 1)} to choose from for a problem on average",
        *_answers(figures, config.search.accept),
        f"tokens: {figures.policy_tokens:,} of the policy, {figures.scorer_computed:,} computed by the scorer (of "
        f"{figures.scorer_tokens:,} that it read); {figures.tokens_per_problem:,.0f} together for a problem",
        *_faults(figures),
        *_waits(figures, by_steps=search_for(config.search).newest_only),
    ]
    made, tokens = format_count(found.added["problems"], "problem"), found.added["tokens"]
    lines += ending_lines(found, made, (tokens, "{:,.0f} tokens/s"), over="problems")
    if config.run.report:
        from pipeline.analysis.report.run import page_at_end

        with interruptible():
            lines.append(f"report: {page_at_end(storage, changed=found.units_done_now > 0)}")
    write_lines(lines)
    return figures.chosen > 0


def _answers(figures: "SearchFigures", accept: float | None) -> Iterator[str]:
    """Lines about the answers: how many are right, as far as that is known, and how many may be trusted."""
    from pipeline.analysis.searches.sentences import READABLE, UNREADABLE

    if figures.graded:
        share = format_percent(figures.right / figures.graded)
        yield f"right: {figures.right:,} of {figures.graded:,} with a known answer that can be graded ({share})"
    if ungraded := figures.known - figures.graded - figures.unreadable:
        yield f"not claimed: {format_count(ungraded, 'problem')} whose chosen answer cannot be graded"
    if figures.unreadable:
        yield f"not claimed: {format_count(figures.unreadable, 'problem')} with {UNREADABLE}: {READABLE}"
    if unknown := figures.problems - figures.known:
        yield f"not claimed: {format_count(unknown, 'problem')} without a known answer"
    if accept is not None and figures.trusted is not None:
        of = f"; right: {figures.right_trusted:,} of {figures.graded_trusted:,} of them with an answer that can be graded"
        yield (
            f"trusted: {figures.trusted:,} of {figures.problems:,} problems reach search.accept"
            f"{of if figures.graded_trusted else ''}"
        )
        if not figures.trusted:
            from pipeline.analysis.searches.sentences import nothing_trusted

            yield nothing_trusted(figures.highest, accept)


def _faults(figures: "SearchFigures") -> Iterator[str]:
    if figures.without_chain:
        yield f"no chain: {format_count(figures.without_chain, 'problem')}; the column stopped of searches says why"
    if figures.cut:
        yield f"cut: {format_count(figures.cut, 'chosen chain')} ended at sampling.max_tokens, search.max_steps or the context"
    if words := unscored_text(scored=figures.scored, unscored=figures.unscored):
        yield f"scores: {words}{'' if figures.scored else '; the column fault of stepscores says why'}"


def _waits(figures: "SearchFigures", *, by_steps: bool) -> Iterator[str]:
    """A line about a scorer that is slower than the policy. `by_steps`: the method scores every step."""
    if figures.share_scoring > SLOW_SHARE and figures.seconds_scoring > SLOW_SECONDS * figures.problems:
        yield (
            f"slow scorer: of the time that searches waited, {format_percent(figures.share_scoring)} was for scores; give the "
            f"scorer more devices or servers{_OR_WHOLE_CHAINS if by_steps else ''}"
        )


SEARCHING: Work[SearchRunConfig, "Summary"] = Work(
    run="pipeline.runtime.searching.task:SearchTask",
    ended=_ended,
    estimated=_estimated,
    warnings=imported("pipeline.runtime.searching.task:doubts"),
)
SEARCH = Command(
    name="search",
    summary="solve problems with a policy that a process reward model steers",
    about=(
        "search: write solutions step by step: a scorer rates the steps, and a method such as beam search or best of N says "
        "what comes next."
    ),
    examples=(
        "search search=beam data.path=my.jsonl policy.model=org/name scorer.model=prm run_dir=out",
        "search search=mcts policy=oracle policy.oracle.world=tree scorer=oracle scorer.oracle.world=tree \\\n"
        "  data=sample run_dir=out",
        "search search=dvts data.path=my.jsonl policy.model=Qwen/Qwen2.5-Math-7B-Instruct \\\n"
        "  scorer=qwen scorer.model=Qwen/Qwen2.5-Math-PRM-7B data.splitter=blank_line run_dir=out",
        "search search=weighted search.accept=0.95 calibration=cal.json data.path=my.jsonl policy.model=org/name \\\n"
        "  scorer.model=prm run_dir=out",
    ),
    notes="""\
A row needs no known answer. Where it has one, the search never sees it, and the choice is graded in the end. The folder is a
run directory: the same command goes on after an interruption. Its tables are searches, with the choice of each problem,
candidates, and the log: samples and stepscores. `report` shows each problem's tree, `select` compares searches at equal tokens.

--estimate searches a sample of the problems, says how long all would take, and writes nothing.
""",
    most_used=("search", "search.n", "data.path", "policy.model", "scorer", "scorer.model", "run_dir", "search.accept"),
    schema=SearchRunConfig,
    flags=("estimate",),
    run=SEARCHING,
    work=SEARCHING,
    # A search that asks for no scores needs no scorer.
    implied=without_model("search", "scores", "scorer"),
)
