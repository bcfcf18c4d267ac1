"""The `export` command: writes the labels of a run in the layout that a trainer reads."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path, PurePath

import polars as pl

from pipeline.config.chain_filter import ChainFilter
from pipeline.config.consensus import ABOUT, DIGEST, MADE_UP, RECALIBRATE, WITNESSES, made_up_witnesses, witness_names
from pipeline.config.recorded_settings import Settings
from pipeline.consensus.kept import COLUMNS as OF_CONSENSUS
from pipeline.consensus.kept import ConsensusCounter, reason_text
from pipeline.core.errors import InputError, UsageError
from pipeline.core.formatting import format_count
from pipeline.core.tables import LABELS
from pipeline.data.problems import in_validation
from pipeline.engines.registry import made_up_text
from pipeline.estimators.labels import label_rule
from pipeline.estimators.target_places import place_warnings, total_places
from pipeline.export.balance import chains_to_drop
from pipeline.export.base import ExportRow, Plan, refuse_torn_rows
from pipeline.export.card import data_card
from pipeline.export.decontaminate import Match, contamination
from pipeline.export.example import LabelCounts, step_totals
from pipeline.export.formats.plain import with_consensus
from pipeline.export.formats.tokens import load_encoder
from pipeline.export.hub import Hub
from pipeline.export.registry import EXPORTS, exporter_for, plan_of, refuse_ineffective, with_own_settings
from pipeline.export.result import (
    CARD,
    LEFT_OUT,
    ExportResult,
    FileCounts,
    FirstLeftOut,
    Reason,
    is_card,
    reasons,
    target_text,
)
from pipeline.export.settings import Balance, ExportConfig, InvalidChains, TargetKind
from pipeline.export.targets import ORIGIN, SOMETIMES, LabelRow, LeftOutChains, without_implied
from pipeline.export.write import RowFile, TableFile, row_file
from pipeline.storage.disk import os_errors
from pipeline.storage.location import folder_at, storage_at
from pipeline.storage.outputs import atomic_file, atomic_folder, refuse_overwriting
from pipeline.storage.storage import Storage
from pipeline.storage.stored_labels import has_consensus, refuse_without
from pipeline.storage.stored_run import StoredRun, readable_run
from pipeline.storage.stored_trees import COLUMNS as OF_TREES
from pipeline.storage.stored_trees import ProblemTree, StoredTrees
from pipeline.storage.units import UnitRef
from pipeline.trees.posterior import posteriors

TRAIN = "train"
VALIDATION = "validation"
INVALID = ".invalid.jsonl"
"""The suffix, after the name of a folder that was not written, of the list of chains that the trainer would misread."""
PROBLEMS_REMEMBERED = 4096
CONTAMINATED = "contaminated"
BY_CONSENSUS = "left_out_by_consensus"
SURPLUS = "balance"
_SECTIONS = ("data.", "policy.", "sampling.")
"""The sections of a run's settings that the data card shows, beside those of its labels."""
_MODELS = ("policy.model", "policy.tokenizer", "policy.speculative_model")
"""Settings that may hold a path of this machine: the card shows its last part."""


def export(config: ExportConfig) -> ExportResult:
    """Write the current labels of a run into the folder `config.out`: a `train` file, a `validation` file if requested, a data
    card, and a list of the chains that are left out. The folder appears when it is complete.

    Raises UsageError for settings that contradict each other, no run, an unfinished run without `partial`, and an `out` that
    holds something else; InputError if the trainer would misread chains and `invalid=stop`, or if a file would have no row;
    UploadError if the export is complete but not on the hub; StoreError.
    """
    config = with_own_settings(config)
    refuse_ineffective(config)
    out = _output_folder(config)
    hub = Hub(config) if config.push_to_hub else None
    plan = plan_of(config, load_encoder(config.tokenizer) if config.tokenizer else None)
    storage = storage_at(config.run_dir)
    run = readable_run(storage, partial=config.partial)
    refuse_without(run, config.soft)
    if has_consensus(run):
        plan = with_consensus(plan)
    job = _Job(config, plan, storage, run)
    invalid = out.with_name(out.name + INVALID)
    with atomic_folder(out) as folder, os_errors(out):
        job.write(folder)
        if job.invalid:
            with atomic_file(invalid) as file:
                file.write(_lines(job.invalid))
            raise InputError(_refusal(config, job.invalid, invalid))
        exported = job.export(out)
        job.chain_filter.check_known(storage.run_dir)
        _refuse_empty(config, exported, storage.run_dir, job.chain_filter)
        if job.left_out:
            (folder / LEFT_OUT).write_bytes(_lines(job.left_out))
        card = data_card(
            config, plan, exported, _made_with(run), label_rule(_labelled_with(run.settings)), run.tally.totals
        )
        (folder / CARD).write_text(card, encoding="utf-8")
        files = {name.partition(".")[0]: out / name for name in exported.files}
        for name, text in exporter_for(config).additional_files(config, plan, files).items():
            (folder / name).write_text(text, encoding="utf-8")
    invalid.unlink(missing_ok=True)
    # Lists and configurations beside them name chains and paths of this machine.
    return exported if hub is None else replace(exported, address=hub.push(out, [CARD, *exported.files]))


class _Job:
    """One pass over the labels of a run, or two to balance classes. Counts what is read, left out and written."""

    def __init__(self, config: ExportConfig, plan: Plan, storage: Storage, run: StoredRun) -> None:
        self._config = config
        self._plan = plan
        self._storage = storage
        self._run = run
        self._contaminated_by = self._listed_problems()
        self.chain_filter = ChainFilter(config)
        self._chains = self._steps = self._steps_left_out = 0
        self._given_outcomes: set[str] = set()
        self._files: dict[str, FileCounts] = {}
        self._by_consensus = has_consensus(run)
        self._trees = None if plan.of_trees is None else StoredTrees(run)
        self._agreed = ConsensusCounter()
        self.left_out: list[FirstLeftOut] = []
        self.invalid: list[FirstLeftOut] = []
        self._kept: list[FirstLeftOut] = []

    def write(self, folder: Path) -> None:
        """Write the files of rows, and note the chains that are in no file."""
        surplus = self._surplus()
        names = {split: f"{split}.{self._plan.file.value}" for split in self._splits()}
        self._files = {name: FileCounts() for name in names.values()}
        with ExitStack() as stack:
            files = {
                split: stack.enter_context(row_file(folder / name, self._plan.file, self._plan.schema))
                for split, name in names.items()
            }
            for frame, made in self._made():
                self._chains += frame.height
                self._steps += int(frame["steps"].list.len().sum())
                if self._by_consensus:
                    self._agreed.add(frame)
                for split, chosen in self._by_split(made, surplus).items():
                    self._put(files[split], frame, chosen)
                    _count(self._files[names[split]], chosen)

    def export(self, out: Path) -> ExportResult:
        """The result of the export."""
        return ExportResult(
            out=str(out),
            chains=self._chains,
            steps=self._steps,
            files=self._files,
            step_counts=step_totals(counts.steps for counts in self._files.values()),
            steps_left_out=self._steps_left_out,
            given_outcomes=len(self._given_outcomes),
            made_up=made_up_text(self._run.identity),
            made_up_opinions=tuple(made_up_witnesses(self._run.settings)),
            consensus=self._agreed.summary(),
            left_out=reasons(self.left_out),
            kept=reasons(self._kept),
            owed=len(self._run.units) - len(self._run.wholes),
            target=target_text(self._plan, self._config),
            warnings=tuple(self._warnings()),
        )

    def _warnings(self) -> Iterator[str]:
        plan = self._plan
        places = total_places(counts.places for counts in self._files.values())
        values = "target=soft" if plan.takes_values else "`train`, or a format that takes target=soft"
        match plan.target:
            case TargetKind.hard:
                yield from place_warnings(places, what="label", instead=f"Train on values instead ({values})")
            case TargetKind.soft:
                yield from place_warnings(
                    places, what="value", instead="If more of them have a label, train on labels (target=hard)"
                )
            case TargetKind.counts:
                yield from place_warnings(
                    places, what="graded rollout", instead="If more of them have a value, train on values (target=soft)"
                )

    def _listed_problems(self) -> Callable[[str], Match | None]:
        """Finds the listed problem that a problem matches. The chains of a problem come together, so results are cached."""
        if not self._config.decontaminate.paths:
            return lambda _: None
        return lru_cache(PROBLEMS_REMEMBERED)(contamination(self._config.decontaminate).contaminated_by)

    def _splits(self) -> list[str]:
        return [TRAIN, VALIDATION] if self._config.validation else [TRAIN]

    def _split(self, made: ExportRow) -> str:
        share = self._config.validation
        return VALIDATION if share and in_validation(made.chain.problem, share, self._config.seed) else TRAIN

    def _made(self) -> Iterator[tuple[pl.DataFrame, list[ExportRow]]]:
        """The chains unit by unit, together with their rows of `labels`."""
        unread = set(SOMETIMES) - {*self._plan.reads, *self.chain_filter.columns, ORIGIN}
        columns = {*LabelRow._fields} - unread | {*(self._plan.columns or ())}
        columns |= {*(OF_CONSENSUS if self._by_consensus else ()), *(() if self._trees is None else OF_TREES)}
        fields = [pl.lit(None).alias(name) if name in unread else name for name in LabelRow._fields]
        for unit, frame in self._run.unit_frames(LABELS, sorted(columns)):
            problems: defaultdict[str, list[LabelRow]] = defaultdict(list)
            for values in frame.select(fields).iter_rows():
                row = without_implied(LabelRow(*values))
                problems[row.problem_id].append(row)
            sorted_out = {problem: self._sorted_out(chains) for problem, chains in problems.items()}
            trees = self._grown([chain for _, kept in sorted_out.values() for chain in kept], unit, frame)
            with EXPORTS.blame(self._config.format, "making rows"):
                rows = [
                    made
                    for problem, (gone, kept) in sorted_out.items()
                    for made in (*gone, *self._rows(kept, trees.get(problem)))
                ]
                if EXPORTS.plugin(self._config.format) is not None:
                    refuse_torn_rows(rows, self._plan)
            yield frame, rows

    def _sorted_out(self, chains: Sequence[LabelRow]) -> tuple[list[ExportRow], list[LabelRow]]:
        """The chains of a problem that are left out before rows are made, and the others."""
        gone: list[ExportRow] = []
        kept: list[LabelRow] = []
        for chain in chains:
            graded = bool(chain.root_n_rollouts) or any(chain.n_rollouts or ())
            reason = self.chain_filter.reason(chain.p_outcome, chain.root_value, graded=graded)
            if reason is None and chain.left_out is not None and not self._plan.outcomes:
                why = f"consensus leaves it out: {reason_text(chain.left_out)}"
                gone.append(ExportRow(chain=chain, left_out=LeftOutChains(kind=BY_CONSENSUS, detail=why)))
            elif reason is None:
                kept.append(chain)
            else:
                gone.append(ExportRow(chain=chain, left_out=LeftOutChains(kind=reason.kind, detail=reason.detail)))
        return gone, kept

    def _grown(self, kept: Sequence[LabelRow], unit: UnitRef, frame: pl.DataFrame) -> dict[str, ProblemTree]:
        """The tree of each problem of a unit, if the plan asks for trees. A chain that the filter leaves out is in none."""
        if self._trees is None:
            return {}
        rows = frame.filter(pl.col("chain_id").is_in([chain.chain_id for chain in kept]))
        return {tree.tree.problem_id: tree for tree in self._trees.of_unit(unit, rows)}

    def _rows(self, chains: Sequence[LabelRow], tree: ProblemTree | None) -> Iterator[ExportRow]:
        """The rows of one problem. A chain that the filter leaves out is in no row, so it is in no pair either."""
        plan, trees = self._plan, self._trees
        if plan.make is not None:
            yield from plan.make(chains)
        elif plan.of_trees is not None and trees is not None and tree is not None:
            if match := self._contaminated_by(tree.problem):
                # Rows belong to a whole problem, so all of its chains are left out.
                yield from (ExportRow(chain=chain, left_out=_contaminated(match)) for chain in chains)
            else:
                yield from plan.of_trees(chains, tree, posteriors(tree.tree, trees.strength))

    def _surplus(self) -> Collection[str]:
        """Training chains that `balance` leaves out."""
        if self._config.balance is Balance.none:
            return ()
        counted = [
            (made.chain.chain_id, made.labels)
            for _, chains in self._made()
            for made in chains
            if self._reason(made) is None and self._split(made) == TRAIN
        ]
        return chains_to_drop(counted, self._config.balance, self._config.seed)

    def _by_split(self, chains: Sequence[ExportRow], surplus: Collection[str]) -> dict[str, list[ExportRow]]:
        chosen: defaultdict[str, list[ExportRow]] = defaultdict(list)
        gone: dict[FirstLeftOut, None] = {}
        left_steps: dict[str, int] = {}
        for made in chains:
            reason = self._reason(made)
            if reason is None and made.chain.chain_id in surplus:
                reason = LeftOutChains(
                    kind=SURPLUS, detail=f"it belongs to the larger class, balance={self._config.balance.value}"
                )
            if reason is not None:
                gone[_left(made, reason.kind, reason.detail)] = None
                left_steps[made.chain.chain_id] = len(made.chain.steps)
            elif made.offences and self._config.invalid is InvalidChains.stop:
                self.invalid += [_left(made, o.kind, o.detail, fatal=o.fatal) for o in made.offences]
            else:
                for chain in (made.chain, *made.others):
                    if chain.outcome is not None and chain.final_answer is None:
                        self._given_outcomes.add(chain.chain_id)
                self._kept += [_left(made, offence.kind, offence.detail) for offence in made.offences]
                chosen[self._split(made)].append(made)
        self.left_out += gone
        self._steps_left_out += sum(left_steps.values())
        return chosen

    def _reason(self, made: ExportRow) -> LeftOutChains | None:
        if made.left_out:
            return made.left_out
        if match := self._contaminated_by(made.chain.problem):
            return _contaminated(match)
        if self._config.invalid is InvalidChains.stop:
            return None
        for offence in made.offences:
            if offence.fatal or self._config.invalid is InvalidChains.drop:
                return LeftOutChains(kind=offence.kind, detail=offence.detail)
        return None

    def _put(self, file: RowFile, frame: pl.DataFrame, chosen: Sequence[ExportRow]) -> None:
        if self._plan.columns is None:
            file.write([made.row for made in chosen if made.row is not None])
            return
        assert isinstance(file, TableFile)
        ids = [made.chain.chain_id for made in chosen]
        table = frame.filter(pl.col("chain_id").is_in(ids)).select(self._plan.columns).to_arrow()
        file.write_table(table.cast(self._plan.schema))


def _made_with(run: StoredRun) -> Settings:
    """The settings that decide about the labels: the input, which policy was sampled how, then estimator and grader.

    `sampling.rollouts` is no part of a run's identity. Its value comes from the finished units, which may have several."""
    sampled = {
        key: _without_folders(value) if key in _MODELS else value
        for key, value in run.identity.items()
        if key.startswith(_SECTIONS)
    }
    asked = {whole.unit_target.rollouts for whole in run.wholes.values()}
    rollouts = f"{min(asked)} to {max(asked)}" if len(asked) > 1 else next(iter(asked), None)
    return {**sampled, "sampling.rollouts": rollouts, **_labelled_with(run.settings)}


def _labelled_with(settings: Settings) -> Settings:
    """The settings of the labels. Witnesses that are files are called as the last part of their path."""
    names = {name: _short(name) for name in witness_names(settings)}
    found = {key: value for key, value in settings.items() if not key.startswith((ABOUT, DIGEST, MADE_UP, RECALIBRATE))}
    if names:
        found[WITNESSES] = list(names.values())
    of_each = {
        f"{part}{short}": settings[key]
        for part in (ABOUT, DIGEST)
        for name, short in names.items()
        if (key := f"{part}{name}") in settings
    }
    return {**found, **of_each}


def _short(witness: str) -> str:
    kind, colon, source = witness.partition(":")
    return f"{kind}{colon}{PurePath(source).name}"


def _without_folders(model: object) -> object:
    """A model as its folder is called; names of the Hub stay whole."""
    is_path = isinstance(model, str) and model.startswith(("/", "~", "."))
    return PurePath(str(model)).name if is_path else model


def _count(counts: FileCounts, chosen: Sequence[ExportRow]) -> None:
    counts.rows += len(chosen)
    counts.problems.update(made.chain.problem_id for made in chosen)
    counts.labels = LabelCounts(*map(sum, zip(counts.labels, *(made.labels for made in chosen), strict=True)))
    counts.places = total_places([counts.places, *(made.places for made in chosen)])
    counts.steps = step_totals([counts.steps, *(made.steps for made in chosen)])


def _contaminated(match: Match) -> LeftOutChains:
    location = match.listed.location
    detail = f"its problem shares '{match.words}' with {location.file}, row {location.line}"
    return LeftOutChains(kind=CONTAMINATED, detail=detail)


def _left(made: ExportRow, kind: str, detail: str, *, fatal: bool = False) -> FirstLeftOut:
    chain = made.chain
    return FirstLeftOut(chain_id=chain.chain_id, source_id=chain.source_id, kind=kind, detail=detail, fatal=fatal)


def _output_folder(config: ExportConfig) -> Path:
    if "://" in config.out:
        raise UsageError(f"out={config.out}: an export is written to a local folder; copy it to a bucket afterwards")
    out = Path(config.out).expanduser().absolute()
    if not config.out.strip() or not out.name:
        raise UsageError("out is empty: give out=FOLDER")
    refuse_overwriting({"out": out}, _inputs(config))
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return out
    if not is_card(out / CARD):
        raise UsageError(f"out={out} exists and is no export: name a new folder")
    if not config.overwrite:
        raise UsageError(f"out={out} holds an earlier export: name a new folder, or replace it with overwrite=true")
    return out


def _inputs(config: ExportConfig) -> list[Path]:
    listed = [Path(path).expanduser() for path in config.decontaminate.paths if "://" not in path]
    return [folder_at(config.run_dir), *listed]


def _lines(chains: Sequence[FirstLeftOut]) -> bytes:
    return "".join(json.dumps(asdict(chain), ensure_ascii=False) + "\n" for chain in chains).encode()


def _refusal(config: ExportConfig, invalid: Sequence[FirstLeftOut], listed: Path) -> str:
    name = config.format
    chains = len({left.chain_id for left in invalid})
    found = _found(reasons(invalid))
    keep = "" if all(left.fatal for left in invalid) else ", or write those that can be written with invalid=keep"
    return (
        f"nothing was exported, because the trainer of format={name} would misread {format_count(chains, 'chain')}: "
        f"{found}. {listed} lists them all. Leave them out with invalid=drop{keep}"
    )


def _refuse_empty(config: ExportConfig, exported: ExportResult, run_dir: str, chain_filter: ChainFilter) -> None:
    """Raise InputError if a file would have no row, because `datasets` cannot load such a file."""
    if not exported.chains:
        raise InputError(f"{run_dir} holds no labelled chains to export")
    empty = [name for name, counts in exported.files.items() if not counts.rows]
    if len(empty) == len(exported.files):
        remedy = chain_filter.remedy(exported.left_out)
        raise InputError(
            f"{run_dir}: none of {format_count(exported.chains, 'chain')} can be exported: {_found(exported.left_out)}"
            + (f"; {remedy}" if remedy else "")
        )
    if empty:
        problems = sum(len(counts.problems) for counts in exported.files.values())
        raise InputError(
            f"{run_dir}: validation={config.validation:g} leaves no row of the {format_count(problems, 'problem')} for "
            f"{empty[0]}: {'raise it, or leave it out' if empty[0].startswith(VALIDATION) else 'lower it'}"
        )


def _found(by_kind: Mapping[str, Reason]) -> str:
    return "; ".join(f"{reason.count:,} {kind} ({reason.first.text})" for kind, reason in by_kind.items())
