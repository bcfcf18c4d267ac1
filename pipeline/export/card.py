"""The data card of an export: a page in Markdown for readers, `datasets.load_dataset(FOLDER)` and the Hugging Face Hub.

It says how the labels were made, what their figures are, what they are known to be wrong about, and what was left out. Texts
from settings stand in code, in which Markdown and HTML mean nothing. No text of a data set or a model is in it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from enum import Enum
from pathlib import PurePosixPath

from pipeline.config.consensus import ABOUT, witness_names
from pipeline.config.recorded_settings import Settings, flatten_settings
from pipeline.consensus.kept import SUBSET, ConsensusSummary, reason_text, steps_text
from pipeline.core.formatting import format_percent
from pipeline.core.records import Totals
from pipeline.export.base import Plan
from pipeline.export.result import CARD_MARK, ExportResult, FileCounts, Reason, given_outcomes_text, step_lines
from pipeline.export.settings import ExportConfig

_BACKTICKS = re.compile("`+")
TAGS = ("process-reward-model", "step-labels", "monte-carlo", "stepvalue")
"""The tags of every card. The name of the format follows."""
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
_LARGEST = "n>10M"
_PATHS = ("run_dir", "out", "decontaminate.paths")
"""Settings that hold paths of a machine: a card shows their last part."""
_FILTERS = (
    "min_p_outcome", "min_root_value", "max_root_value", "balance", "uncertain", "neutral", "after_error",
    "invalid", "decontaminate.", "threshold", "partial", "max_length",
)  # fmt: skip
_BIASES = (
    "A value is about this policy: how often *it* reaches a correct answer from there. A right step can have a low value "
    "because the rest is too hard for the policy, and a wrong step a high one because the policy corrects it.",
    "Only final answers are checked. A rollout that reaches the right answer by luck or by wrong reasoning counts as correct; "
    "`min_p_outcome` leaves out chains that look so.",
    "The checker errs too, most where answers have several forms. What it could not judge is ungraded and is in no value.",
    "Values are estimates from few rollouts. Their noise is in `value_sd`, `low` and `high` of the run, and in most formats "
    "not in the rows. Some estimators draw values of neighbouring steps towards each other.",
    "Completions that the token limit cut have no answer, so long solutions count less than they should.",
    "Known answers and chains are taken as given: what is wrong there is wrong here.",
)


def data_card(
    config: ExportConfig, plan: Plan, exported: ExportResult, made_with: Settings, rule: str, totals: Totals
) -> str:
    """The card in Markdown. Its front matter names the data files, the licence and tags.

    `made_with`: the settings of the run and of its labels. `rule`: the label rule in words. `totals`: of the whole run."""
    parts = asdict(config)
    own = parts.pop("own")
    if config.own is not None:
        parts[config.own.SECTION] = own
    usual = _by_key(asdict(ExportConfig()))
    asked = {key: _last_parts(value) if key in _PATHS else value for key, value in _by_key(parts).items()}
    return "".join(
        [
            _front_matter(config, exported),
            f"# {CARD_MARK}\n\n",
            f"Layout {_code(config.format)}{_marks(plan)}. Labels are Monte Carlo estimates of the chance that the policy "
            "reaches a correct answer"
            f"{', joined with the opinions of other witnesses' if exported.consensus else ''}; its name and the settings are "
            "below. "
            "The texts keep the licence of the problems and chains.\n\n",
            *(
                f"**{text[:1].upper()}{text[1:]}.**\n\n"
                for text in (exported.made_up, *exported.made_up_opinions)
                if text
            ),
            "| file | rows | problems | labels | good | bad | neutral | uncertain |\n|---|---|---|---|---|---|---|---|\n",
            *(_row(name, counts) for name, counts in exported.files.items()),
            *(f"\nSteps: {text}.\n" for text in step_lines(exported)),
            f"\nOutcomes: {given_outcomes_text(exported)}.\n" if exported.given_outcomes else "",
            f"\nTarget of a step: {exported.target}.\n" if exported.target else "",
            _reasons("Left out", exported.left_out),
            _reasons("Kept, although the trainer misreads them", exported.kept),
            *(f"\nWarning: {text}.\n" for text in exported.warnings),
            f"\nUnfinished units of the run, which are left out: {exported.owed:,}.\n" if exported.owed else "",
            "\n## How the labels were made\n\n",
            *_method(made_with, rule),
            *_consensus(made_with, exported.consensus),
            "\n## Figures of the run\n\n",
            *_figures(totals),
            "\n## Known biases\n\n",
            *(f"- {text}\n" for text in _BIASES),
            "\n## Filters\n\n",
            *_filters({key: value for key, value in asked.items() if value != usual.get(key)}, exported),
            "\n## Settings of the export\n\n",
            _settings(asked),
            "\n## Settings of the labels\n\n",
            _settings(made_with),
        ]
    )


def _by_key(parts: Mapping[str, object]) -> dict[str, object]:
    return {key: value for name, part in parts.items() for key, value in flatten_settings(name, part).items()}


def _front_matter(config: ExportConfig, exported: ExportResult) -> str:
    rows = sum(counts.rows for counts in exported.files.values())
    size = next((name for most, name in _SIZES if rows < most), _LARGEST)
    tags = [*dict.fromkeys([*TAGS, config.format])]
    lines = ["---", "configs:", "- config_name: default", "  data_files:"]
    for name in exported.files:
        lines += [f"  - split: {name.partition('.')[0]}", f"    path: {name}"]
    lines += [f"license: {_yaml(config.hub.license)}"] if config.hub.license else []
    lines += ["tags:", *(f"- {_yaml(tag)}" for tag in tags), f"size_categories:\n- {_yaml(size)}", "---", "", ""]
    return "\n".join(lines)


def _method(made_with: Settings, rule: str) -> Iterator[str]:
    def section(*names: str) -> str:
        shown = [
            f"{key.partition('.')[2]} {_code(value)}"
            for key, value in made_with.items()
            if key.startswith(names) and value not in (None, "", [], False)
        ]
        return ", ".join(shown) or "the defaults"

    policy = made_with.get("policy.model") or made_with.get("policy.kind")
    others = [name for name in made_with if name.startswith("policy.") and not name.startswith("policy.prompt.")]
    named = ("policy.model", "policy.kind")
    yield f"- Policy: {_code(policy)}; {section(*(name for name in others if name not in named))}.\n"
    yield f"- Prompt: {section('policy.prompt.')}.\n"
    yield f"- Sampling: {section('sampling.')}.\n"
    yield f"- Estimator: {_code(made_with.get('estimator.name'))}; {section('estimator.')}.\n"
    yield f"- Label rule: {rule}.\n"
    checker, version = made_with.get("grader.kind"), made_with.get("grader_version")
    yield f"- Checker: {_code(checker)}; {section('grader.')}; version {_code(version)}.\n"


def _consensus(made_with: Settings, found: ConsensusSummary | None) -> Iterator[str]:
    """Which witnesses labels by consensus have besides Monte Carlo, and which chains have none."""
    if found is None:
        return
    yield "\n## Consensus\n\nThe labels join Monte Carlo with the opinions of witnesses on where the first error is:\n\n"
    for name in witness_names(made_with):
        yield f"- {_code(name)}: {_code(made_with.get(f'{ABOUT}{name}'))}\n"
    yield f"\nKept: {found.kept:,} of {found.chains:,} chains of the run ({format_percent(found.kept / found.chains)})"
    yield f"; {steps_text(found)}.\n"
    if not found.left_out:
        return
    yield "\n| left out because | chains |\n|---|---|\n"
    yield from (f"| {_code(reason_text(reason))} | {count:,} |\n" for reason, count in found.reasons.items())
    yield "\nWhere Monte Carlo and a witness are wrong in the same way, their agreement does not show it. Some chains are left "
    yield "out more often than others:\n\n"
    yield "| chains by | | in the run | left out | share |\n|---|---|---|---|---|\n"
    for name, groups in found.groups.items():
        # Names of subsets are texts of the data set.
        for group in groups if name != SUBSET else ():
            yield f"| {name} | {group.name} | {group.chains:,} | {group.left_out:,} | {format_percent(group.share)} |\n"


def _figures(totals: Totals) -> Iterator[str]:
    yield f"- {totals.problems:,} problems, {totals.chains:,} chains, {totals.prefixes:,} distinct prefixes\n"
    yield f"- {totals.rollouts:,} rollouts: {totals.correct:,} correct, {totals.incorrect:,} incorrect, "
    yield f"{totals.no_answer:,} without an answer, {totals.ungraded:,} ungraded; {totals.truncated:,} cut by the token limit\n"
    if totals.prefixes:
        yield f"- on average {totals.rollouts / totals.prefixes:.1f} rollouts for each prefix, measured\n"
    yield f"- {totals.tokens:,} tokens in rollouts\n"


def _filters(asked: Mapping[str, object], exported: ExportResult) -> Iterator[str]:
    given = {key: value for key, value in asked.items() if key.startswith(_FILTERS)}
    yield _settings(given) or "None was given.\n"
    gone = sum(reason.count for reason in exported.left_out.values())
    yield f"\nLeft out: {gone:,} of {exported.chains:,} chains.\n"


def _last_parts(value: object) -> object:
    if isinstance(value, list):
        return [_last_parts(each) for each in value]
    return PurePosixPath(str(value)).name


def _yaml(text: str) -> str:
    """A text in YAML, whatever it holds: JSON's texts are YAML's."""
    return json.dumps(text)


def _code(value: object) -> str:
    """A value as code, in which Markdown and HTML mean nothing: between more backticks than it has in a row itself."""
    text = _plain(value)
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _row(name: str, counts: FileCounts) -> str:
    labels = counts.labels
    kinds = (labels.good, labels.bad, labels.neutral, labels.unlabelled)
    numbers = (counts.rows, len(counts.problems), labels.total, *kinds)
    return f"| `{name}` | " + " | ".join(f"{number:,}" for number in numbers) + " |\n"


def _reasons(title: str, found: Mapping[str, Reason]) -> str:
    return (
        "".join([f"\n{title}:\n\n", *(f"- {kind}: {reason.count:,}\n" for kind, reason in found.items())])
        if found
        else ""
    )


def _settings(settings: Settings) -> str:
    return "".join(
        f"- {_code(key)}: {_code(value)}\n" for key, value in settings.items() if value not in (None, [], "")
    )


def _plain(value: object) -> str:
    """A value on one line: a text as it is, and as JSON where it has no visible end or characters that nobody sees."""
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, str) and value and value.isprintable() and value == value.strip():
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def _marks(plan: Plan) -> str:
    named = (("separator", plan.marks.separator), ("placeholder", plan.marks.placeholder))
    return "".join(f", {name} {_code(mark)}" for name, mark in named if mark)
