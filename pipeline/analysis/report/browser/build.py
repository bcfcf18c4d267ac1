"""The chain browser as parts of a page: markup, style, script, and compressed data.

The data are base64 of gzip in script elements of a type that no web browser runs; the page unpacks them. Nothing of a run is in
html, css or js: text of a data set or a model is only in the data, and enters the page as text nodes.
"""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from pipeline.analysis.report.browser.data import BLOCK, Index, examples_json, prefix_numbers, texts_json
from pipeline.analysis.report.browser.views import (
    COLUMNS,
    CONSENSUS_COLUMNS,
    FINDING_BYTES,
    OPINION_BYTES,
    ROLLOUT_COLUMNS,
    ChainSample,
    FindingView,
    RolloutExample,
    Row,
    Size,
    affordable,
    finding_view,
    rollout_examples,
    sample,
    shown_row,
)
from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import chosen_settings as settings_of
from pipeline.core.errors import UsageError
from pipeline.core.tables import LABELS, ROLLOUTS
from pipeline.display.document import Inset
from pipeline.display.embedded import BASE64, data_element, packed, part, script
from pipeline.estimators.registry import ESTIMATORS
from pipeline.storage.editions import VERDICTS, current_shards
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_findings import CHECK_RUNS, StoredCheck, verdict_frames
from pipeline.storage.stored_labels import has_consensus
from pipeline.storage.stored_run import StoredRun
from pipeline.verifiers.base import Covers

DATA_BYTES = 10_500_000
"""Of all data in the page. Texts of chains are cut to less; examples of rollouts get the rest."""
_FIRST_RATIO = 3.0
"""Assumed ratio of examples to their compressed size, until some are compressed."""
_OF_FINDINGS = ("chain_id", "step_index", "verdict", "covers", "evidence")
_PACKAGE = "pipeline.analysis.report.browser"
_SCRIPTS = ("elements", "listing", "keys", "data", "chains", "list", "detail", "browser")


def build_browser(storage: Storage, run: StoredRun, *, chains: int) -> Inset | None:
    """The browser of a run's current labels, with at most `chains` chains; None without any. Raises StoreError for a damaged
    file."""
    more = CONSENSUS_COLUMNS if has_consensus(run) else ()
    checks = [CHECK_RUNS.read(storage, name, partial=True) for name in CHECK_RUNS.names(storage)]
    frames = run.frames(LABELS, ("chain_id", "problem", "steps", *(["opinions"] if more else [])))
    chosen = sample((size for frame in frames for size in _sizes(frame, len(checks))), chains)
    if not chosen.positions:
        return None
    findings = _findings(checks, _shown_ids(run, chosen)) if checks else {}
    total = sum(shard.rows for shards in current_shards(run.wholes, run.edition).values() for shard in shards)
    confidence = _confidence(run)
    data = _Data(len(chosen.positions))
    for shown, examples in _units(run, chosen, (*COLUMNS, *more), findings):
        data.add(shown, examples)
    return Inset(
        html=_html(len(chosen.positions), total),
        css=part(_PACKAGE, "browser.css"),
        js=script([(_PACKAGE, f"{name}.js") for name in _SCRIPTS]),
        data=data.elements(confidence),
    )


def _confidence(run: StoredRun) -> float:
    try:
        return settings_of(run.settings, EstimatorConfig, ESTIMATORS).confidence
    except UsageError:
        # The run can be read without the plug-in that made its labels.
        return float(str(run.settings.get("estimator.confidence", EstimatorConfig().confidence)))


class _Data:
    """Blocks of chains, compressed as soon as they are full."""

    def __init__(self, chains: int) -> None:
        self._of = chains
        self._index = Index()
        self._chains: list[Row] = []
        self._examples: dict[str, tuple[RolloutExample, ...]] = {}
        self._packed: list[tuple[bytes, bytes]] = []
        self._size = 0
        self._raw_examples = 0
        self._packed_examples = 0

    def add(self, chains: Sequence[Row], examples: Mapping[str, tuple[RolloutExample, ...]]) -> None:
        """Add the shown chains of a unit, and examples of their rollouts by prefix id."""
        self._chains += chains
        self._examples |= examples
        while len(self._chains) >= BLOCK:
            self._pack()
        still_needed = prefix_numbers(self._chains)
        self._examples = {prefix: found for prefix, found in self._examples.items() if prefix in still_needed}

    def elements(self, confidence: float) -> str:
        """The script elements: the index, then blocks of chains and of examples by number."""
        while self._chains:
            self._pack()
        index = packed(self._index.json(confidence))
        return "\n".join(
            [
                data_element("chains-index", index),
                *(data_element(f"chains-texts-{number}", texts) for number, (texts, _) in enumerate(self._packed)),
                *(data_element(f"chains-examples-{number}", shown) for number, (_, shown) in enumerate(self._packed)),
            ]
        )

    def _pack(self) -> None:
        block, self._chains = self._chains[:BLOCK], self._chains[BLOCK:]
        for chain in block:
            self._index.add(chain)
        numbers = prefix_numbers(block)
        texts = packed(texts_json(block, numbers))
        self._size += len(texts)
        shown = affordable(block, self._examples, self._bytes_left())
        examples = packed(examples_json(shown, numbers))
        self._size += len(examples)
        self._raw_examples += sum(example.size for found in shown.values() for example in found)
        self._packed_examples += len(examples)
        self._packed.append((texts, examples))

    def _bytes_left(self) -> float:
        """Bytes before compression for the examples of the current block: its share of the page, in proportion to chains, and
        what earlier blocks did not use."""
        share = DATA_BYTES / BASE64 * len(self._index) / self._of
        ratio = self._raw_examples / self._packed_examples if self._raw_examples else _FIRST_RATIO
        return (share - self._size) * ratio


def _shown_ids(run: StoredRun, chosen: ChainSample) -> set[str]:
    found: set[str] = set()
    start = 0
    for frame in run.frames(LABELS, ("chain_id",)):
        positions = chosen.within(start, start + len(frame))
        found.update(frame["chain_id"].gather([position - start for position in positions]))
        start += len(frame)
    return found


_Findings = Mapping[str, Mapping[int, Sequence[FindingView]]]


def _findings(checks: Sequence[StoredCheck], chains: set[str]) -> _Findings:
    """What verifiers say of the steps of some chains, by chain and step, where they have a verdict."""
    found: dict[str, dict[int, list[FindingView]]] = {}
    for check in checks:
        for frame in verdict_frames(check, _OF_FINDINGS, chains):
            for chain_id, step, verdict, covers, evidence in frame.iter_rows():
                view = finding_view(check.name, verdict, whole=covers == Covers.WHOLE, evidence=evidence)
                found.setdefault(chain_id, {}).setdefault(step, []).append(view)
    return found


def _sizes(frame: pl.DataFrame, checks: int) -> Iterator[Size]:
    """`checks`: number of verifiers that have checked the run."""
    counted = frame.select(
        "chain_id",
        characters=pl.concat_list(
            pl.col("problem").str.len_chars(), pl.col("steps").list.eval(pl.element().str.len_chars())
        ),
        in_bytes=pl.concat_list(
            pl.col("problem").str.len_bytes(), pl.col("steps").list.eval(pl.element().str.len_bytes())
        ),
        opinions=pl.col("opinions").list.len() + 1 if "opinions" in frame.columns else 0,
    )
    for chain_id, characters, in_bytes, opinions in counted.iter_rows():
        other = (OPINION_BYTES * opinions + FINDING_BYTES * checks) * len(characters)
        yield Size(chain_id=chain_id, characters=tuple(characters), in_bytes=tuple(in_bytes), other_bytes=other)


def _units(
    run: StoredRun, chosen: ChainSample, columns: Sequence[str], findings: _Findings
) -> Iterator[tuple[Sequence[Row], Mapping[str, tuple[RolloutExample, ...]]]]:
    """The shown chains of each unit, and examples of their rollouts by prefix id."""
    later = current_shards(run.wholes, run.edition, VERDICTS)
    start = 0
    for unit, frame in run.unit_frames(LABELS, columns):
        positions = [position - start for position in chosen.within(start, start + len(frame))]
        start += len(frame)
        if not positions:
            continue
        chains = [
            shown_row(row, chosen.characters, findings.get(row["chain_id"], {}))
            for row in frame[positions].iter_rows(named=True)
        ]
        rollouts = list(map(pl.DataFrame, run.of_unit(unit.unit_id, ROLLOUTS, ROLLOUT_COLUMNS)))
        verdicts = [pl.DataFrame(read_shard(run.storage, shard)) for shard in later[unit.unit_id]]
        examples = {}
        if rollouts:
            later_ones = pl.concat(verdicts) if verdicts else None
            examples = rollout_examples(pl.concat(rollouts), later_ones, prefix_numbers(chains))
        yield chains, examples


def _html(shown: int, total: int) -> str:
    some = (
        f"This page has {shown:,} of the run's {total:,} chains, chosen by the hashes of their ids; labels/*.parquet has all."
        if shown < total
        else ""
    )
    return part(_PACKAGE, "browser.html").replace("{part}", some)
