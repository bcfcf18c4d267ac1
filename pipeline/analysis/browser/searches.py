"""The browser of the problems of a run of `search`: each has the tree of its search, in which the chosen chain is the main
line."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pipeline.analysis.browser.parts import (
    MOST_NODES,
    Blocks,
    Browser,
    Chosen,
    Detail,
    Order,
    beginning,
    entry,
    nodes,
    short,
)
from pipeline.analysis.searches.trees import AnswerOfChains, ProblemTree, SearchedProblem, TreeNode
from pipeline.core.formatting import format_count
from pipeline.core.tables import CANDIDATES, SAMPLES, SEARCHES
from pipeline.display.document import Inset
from pipeline.display.embedded import rounded, shortened

_ANSWERS = 12
"""Answers of a problem, at most."""
WEAK = 0.5
"""A step with a score below this may be marked as weak: it is more likely wrong than right."""
_VERDICTS = {"correct": "r", "incorrect": "w", "no_answer": "w", None: None}
_STOPS = {
    "done": "all was sampled",
    "accepted": "stopped early: search.accept was reached",
    "no_chain": "no chain ended",
    "failed": "it killed engines, and was not searched",
}
_BROWSER = Browser(
    noun="problem",
    files="searches/*.parquet, samples/*.parquet and stepscores/*.parquet",
    intro="Each problem has a tree of sampled steps. A step's score is a number and a colour; the chosen chain is thick.",
    outcome="Chosen chain",
    menus=(
        (
            "which",
            "Which",
            {"": "all problems", "trusted": "trusted", "untrusted": "not trusted", "unanswered": "without an answer"},
        ),
    ),
    orders={
        "sure": Order("most confident first", "confidence"),
        "unsure": Order("least confident first", "confidence", descending=False),
        "steps": Order("most steps first", "steps"),
        "tokens": Order("most tokens first", "tokens"),
    },
)


def build_search_browser(units: Iterable[list[SearchedProblem]], total: int, most: int) -> Inset:
    """The part of the page of a run with `total` problems, of which it lists at most `most`."""
    chosen = Chosen(total, most)
    listed = len(chosen.places)
    data = Blocks(listed)
    start = 0
    for unit in units:
        for problem in (unit[place] for place in chosen.within(start, len(unit))):
            data.add(index_entry(problem), (node.text for node in problem.tree.nodes), partial(problem_json, problem))
        start += len(unit)
    some = []
    if listed < total:
        some.append(
            f"This page lists {listed:,} of the run's {total:,} problems, chosen by hashes; searches/*.parquet has all."
        )
    if data.shown < listed:
        some.append(f"It has the trees of {data.shown:,} of them; samples/*.parquet has all.")
    return _BROWSER.inset(data, " ".join(some), "Problems")


def index_entry(problem: SearchedProblem) -> dict[str, object]:
    """What the index says of a problem."""
    found = problem.search
    marks = [] if found["trusted"] is None else ["trusted" if found["trusted"] else "untrusted"]
    return {
        **beginning(
            found["problem_id"],
            found["source_id"] or f"problem {found['row'] + 1}",
            found["problem"],
            found["outcome"],
            SEARCHES.name,
        ),
        "answers": None if (answer := found["final_answer"]) is None else short(answer, SEARCHES.name),
        "confidence": rounded(found["confidence"]),
        "steps": len(problem.tree.nodes) - 1,
        "tokens": found["policy_tokens"] + found["scorer_computed"],
        "marks": " ".join([*marks, *(["unanswered"] if answer is None else [])]),
    }


def kept_places(tree: ProblemTree, most: int = MOST_NODES) -> list[int]:
    """The places of the root and of at most `most` steps: the whole chosen path, and the steps that were visited most."""
    # A parent has no fewer visits than its child and stands before it, so no step is kept without those that lead to it.
    ranked = sorted(range(1, len(tree.nodes)), key=lambda at: (not tree.nodes[at].on_path, -tree.nodes[at].visits, at))
    return [0, *sorted(ranked[: max(most, len(tree.path))])]


def problem_json(problem: SearchedProblem, characters: int) -> str:
    """A problem with its tree; texts of steps are cut at `characters`. The root is the first node."""
    tree, more = problem.tree, len(problem.answers) - _ANSWERS
    kept = kept_places(tree)
    places: dict[int | None, int] = {None: -1, **{old: new for new, old in enumerate(kept)}}
    found = [tree.nodes[old] for old in kept]
    weak = _weak(tree)
    shown = nodes(
        parents=[places[node.parent] for node in found],
        # Cut texts name the table that has the whole one. No sample has a step of the chain of the input.
        texts=[shortened(node.text, characters, (CANDIDATES if node.given else SAMPLES).name) for node in found],
        values=[node.score for node in found],
        visits=[node.visits for node in found],
        chosen=[places[at] for at in tree.path],
        weak=None if weak is None else places[weak],
        notes={at: notes for at, old in enumerate(kept) if (notes := list(_notes(tree.nodes[old], weak=old == weak)))},
        ends={at: _end(node) for at, node in enumerate(found) if node.ends},
        tails=_tails(found),
        summary="; ".join(_sentences(tree, len(tree.nodes) - len(kept))),
        picture=True,
    )
    return entry(
        shortened(problem.search["problem"], characters, SEARCHES.name),
        list(_details(problem)),
        [shown] if len(tree.nodes) > 1 else [],
        answers=[_answer(each) for each in problem.answers[:_ANSWERS]],
        more=f"{format_count(more, 'more answer')} of fewer chains." if more > 0 else "",
    )


def _details(problem: SearchedProblem) -> Iterator[Detail]:
    found = problem.search
    if found["gold_answer"] is not None:
        yield "correct answer", short(found["gold_answer"], SEARCHES.name), "answer"
    answer = found["final_answer"]
    yield ("chosen answer", "none") if answer is None else ("chosen answer", short(answer, SEARCHES.name), "answer")
    if found["verdict"] is not None:
        yield "verdict", str(found["verdict"]).replace("_", " ")
    yield "confidence", "–" if found["confidence"] is None else f"{found['confidence']:.2f}"
    if found["trusted"] is not None:
        yield "trusted", "yes" if found["trusted"] else "no"
    yield "ended", _STOPS.get(found["stopped"], str(found["stopped"]))
    yield "policy tokens", f"{found['policy_tokens']:,}, after {found['policy_prompt_tokens']:,} of prompts"
    yield "scorer tokens", f"{found['scorer_computed']:,} computed of {found['scorer_tokens']:,}"
    if found["unscored"]:
        yield "without a score", format_count(found["unscored"], "beginning")
    yield "time", f"{found['seconds']:.1f} s"
    yield "problem_id", found["problem_id"], "code"


def _notes(node: TreeNode, *, weak: bool) -> Iterator[tuple[str, str]]:
    if weak:
        yield "weakest step", "differs"
    if node.given:
        yield "of the input", ""
    if node.fault:
        yield f"no score: {node.fault}", ""


def _end(node: TreeNode) -> tuple[str | None, str, str]:
    """The outcome of the chains that end with a step, their answer, and what else is known of them."""
    cut = "" if not node.cut else "cut by a limit" if node.cut == node.ends else f"{node.cut} cut by a limit"
    chains = f"{node.ends} chains" if node.ends > 1 else ""
    answer = "no answer" if node.answer is None else short(node.answer, SAMPLES.name)
    return _VERDICTS.get(node.verdict, "o"), answer, ", ".join(filter(None, (chains, cut)))


def _tails(found: Sequence[TreeNode]) -> list[str]:
    """What is behind the score of each step."""
    calibrated = any(None not in (node.raw_score, node.score) and node.raw_score != node.score for node in found)

    def tail(node: TreeNode) -> Iterator[str]:
        if node.tokens or not node.given:
            yield format_count(node.tokens, "token")
        if calibrated and node.raw_score is not None:
            yield f"raw score {node.raw_score:.2f}"
        if node.reliability is not None:
            yield f"reliability {node.reliability:.2f}"

    return [" · ".join(tail(node)) for node in found]


def _sentences(tree: ProblemTree, hidden: int) -> Iterator[str]:
    yield format_count(len(tree.nodes) - 1 - hidden, "distinct step")
    if tree.discarded:
        yield f"{tree.discarded:,} tokens were generated after steps that were kept"
    if hidden:
        yield f"{format_count(hidden, 'more step')} with few visits not shown: samples/*.parquet has them"


def _answer(found: AnswerOfChains) -> AnswerOfChains:
    answer = None if found.answer is None else short(found.answer, CANDIDATES.name)
    return found._replace(
        answer=answer, best=rounded(found.best), total=rounded(found.total), verdict=_VERDICTS.get(found.verdict, "o")
    )


def _weak(tree: ProblemTree) -> int | None:
    """The place of the chosen chain's weakest step, if that is weak."""
    score = None if tree.weakest is None else tree.nodes[tree.weakest].score
    return tree.weakest if score is not None and score < WEAK else None
