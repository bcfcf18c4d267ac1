"""Training: trains a policy's weights on a run's labels and writes a folder that `AutoModelForTokenClassification` loads.

A second start resumes from the last checkpoint and reaches the same weights as a training without interruption. The model, its
gradients and AdamW's two moments (16 bytes per parameter together) must fit on one device.
"""

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

from pipeline.core.errors import InputError
from pipeline.core.ids import content_id
from pipeline.estimators.labels import NEGATIVE, POSITIVE
from pipeline.estimators.target_places import left_out_text, place_warnings
from pipeline.scorers.encoding import check_separator, pad_id_of
from pipeline.scorers.heads import (
    classes_of,
    context_of,
    good_probabilities,
    has_bfloat16,
    load_config,
    load_tokenizer,
    read_logits,
    silence_libraries,
)
from pipeline.scorers.settings import unescaped
from pipeline.train.best_epoch import BestEpoch
from pipeline.train.data import LengthBatchSampler, StepCollator, StepDataset, steps_of_run, target_tensors
from pipeline.train.losses import batch_loss
from pipeline.train.model import new_model
from pipeline.train.result import (
    CHECKPOINTS,
    Metrics,
    Record,
    accuracy,
    auc,
    brier,
    last_checkpoint,
    read_record,
    settings_of,
    write_record,
)
from pipeline.train.settings import Loss, TrainConfig
from pipeline.train.targets import used_by

VALIDATION_TOKENS = 8192
"""Tokens of a forward pass without gradients."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """`metrics`: of the finished model on the held-out problems. `before`: the model was finished by an earlier start."""

    out: Path
    metrics: Metrics
    before: bool


def train(config: TrainConfig, *, weights: str, progress: Progress) -> Trained:
    """Train the model `weights`. `progress` gets lines about the data and one line per epoch.

    Raises UsageError for an unusable run, model or folder, InputError if the loss can use no step or if the folder was begun
    with other labels, and StoreError.
    """
    out = Path(config.out).expanduser()
    record = read_record(out, config)
    silence_libraries()
    tokenizer = load_tokenizer(weights, config.revision)
    separator = unescaped(config.separator)
    check_separator(tokenizer, separator)
    max_length = min(config.max_length, context_of(load_config(weights, config.revision), tokenizer))
    training = StepDataset.of_run(config, tokenizer, max_length=max_length, held_out=False)
    held_out = StepDataset.of_run(config, tokenizer, max_length=max_length, held_out=True)
    labels = content_id(training.digest, held_out.digest)
    if record is not None and record.labels != labels:
        raise InputError(
            f"the labels of {config.run_dir} have changed since the training in {out} began: train into another folder, or "
            "remove this one"
        )
    if record is not None and record.metrics is not None:
        return Trained(out=out, metrics=record.metrics, before=True)
    _check_usable(training, config)
    set_seed(config.seed)
    model = new_model(
        weights, config.revision, separator=separator, layers=config.layers, steps=steps_of_run(config.run_dir)
    )
    for name, dataset in (("training", training), ("validation", held_out)):
        progress(_counted(name, dataset, config, max_length))
    for text in _warnings(training, config.loss):
        progress(f"warning     {text}")
    if one := _one_class(held_out):
        progress(f"warning     {one}")
    if config.patience is not None and not held_out.items:
        text = f"patience={config.patience} has no effect: no held-out problem has a step to train on; raise validation"
        progress(f"warning     {text}")
    begun = Record(settings=settings_of(config), labels=labels)
    write_record(out, begun)
    fitted = fit(config, model, tokenizer, training, held_out, progress)
    if fitted.writes:
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
        write_record(out, replace(begun, metrics=fitted.metrics))
        shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    return Trained(out=out, metrics=fitted.metrics, before=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """`metrics`: of the final weights on the held-out problems. `writes`: of several processes, this is the one that writes."""

    metrics: Metrics
    writes: bool


def fit(
    config: TrainConfig,
    model: Any,
    tokenizer: Any,
    training: StepDataset,
    held_out: StepDataset,
    progress: Progress,
) -> Fitted:
    """Train the model in place, from the last checkpoint in `config.out` if there is one."""
    trainer = _StepTrainer(
        config, model, training, pad_id_of(tokenizer), _Validation(held_out, tokenizer, config.loss), progress
    )
    checkpoint = last_checkpoint(Path(config.out).expanduser())
    if checkpoint is not None:
        progress(f"resumes from {checkpoint}")
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return Fitted(metrics=trainer.keep_best(), writes=trainer.is_world_process_zero())


class _Validation:
    """Computes metrics on the held-out chains."""

    def __init__(self, dataset: StepDataset, tokenizer: Any, loss: Loss) -> None:
        self._chains = [item.encoded for item in dataset.items]
        self._targets = [target for item in dataset.items for target in item.targets]
        self._pad_id = pad_id_of(tokenizer)
        self._loss = loss

    def metrics(self, model: Any) -> Metrics:
        if not self._chains:
            return Metrics(steps=0, good=0, bad=0, loss=None, auc=None, accuracy=None, brier=None)
        logits = torch.cat(
            read_logits(classes_of(model), self._chains, batch_tokens=VALIDATION_TOKENS, pad_id=self._pad_id)
        )
        total, count = batch_loss(self._loss, logits, target_tensors(self._targets))
        scores = good_probabilities(logits)
        labels = [target.label for target in self._targets]
        return Metrics(
            steps=sum(used_by(self._loss, target) is not None for target in self._targets),
            good=labels.count(POSITIVE),
            bad=labels.count(NEGATIVE),
            loss=float(total / count),
            auc=auc(scores, labels),
            accuracy=accuracy(scores, labels),
            brier=brier(scores, [target.value for target in self._targets]),
        )


class _StepTrainer(Trainer):  # type: ignore[misc]  # transformers is untyped here
    """A Trainer with step losses. At the end of each epoch it reports a line with metrics and the seconds of the epoch."""

    def __init__(
        self,
        config: TrainConfig,
        model: Any,
        training: StepDataset,
        pad_id: int,
        validation: _Validation,
        progress: Progress,
    ) -> None:
        super().__init__(
            model=model,
            args=_arguments(config, len(training)),
            train_dataset=training,
            data_collator=StepCollator(pad_id),
            callbacks=[_Epochs(self._begun, self._epoch_ended)],
        )
        self.pop_callback(PrinterCallback)
        # The loss is a mean over the steps of a pass, so all passes of an update have equal weight.
        self.model_accepts_loss_kwargs = False
        self._config = config
        self._validation = validation
        self._progress = progress
        self._sums: Any = 0.0
        self._began = time.monotonic()
        self._resumed_within = False
        self._metrics: Metrics | None = None
        self._best = None if config.patience is None else BestEpoch(Path(config.out).expanduser() / CHECKPOINTS)

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        total, count = batch_loss(self._config.loss, outputs.logits.float(), inputs)
        self._sums = self._sums + torch.stack([total.detach(), count])
        loss = total / count
        return (loss, outputs) if return_outputs else loss

    def keep_best(self) -> Metrics:
        """Give the model the weights to keep. Their metrics on the held-out problems."""
        if self._best is not None and (found := self._best.metrics) is not None:
            if self.is_world_process_zero():
                self._best.restore(self.model)
            self._progress(f"kept        the weights of epoch {self._best.epoch}")
            return found
        return self._metrics or self._validation.metrics(self.model)

    def _get_train_sampler(self, train_dataset: Any = None) -> LengthBatchSampler:
        lengths = [len(item.encoded.ids) for item in (train_dataset or self.train_dataset).items]
        return LengthBatchSampler(lengths, self._config.batch, self._config.seed)

    def _begun(self, updates: int, of: int) -> None:
        self._began = time.monotonic()
        self._resumed_within = updates % (of // self._config.epochs) > 0

    def _epoch_ended(self, epoch: int) -> bool:
        """Whether to stop here."""
        self._metrics = self._validation.metrics(self.model)
        total, count = self._sums.tolist()
        seconds = time.monotonic() - self._began
        rest = " since the checkpoint" if self._resumed_within else ""
        self._progress(
            f"epoch {epoch} of {self._config.epochs}  training loss{rest} {total / count:.4f}; "
            f"{validation_text(self._metrics)}; {seconds:,.0f} s{rest}"
        )
        self._sums, self._began, self._resumed_within = 0.0, time.monotonic(), False
        if self._best is None or self._config.patience is None:
            return False
        self._best.compare(epoch, self._metrics, self.model, write=self.is_world_process_zero())
        return self._best.epoch is not None and epoch - self._best.epoch >= self._config.patience


class _Epochs(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """`begun` gets the number of updates done before and the total number of updates. `ended` gets the number of the epoch,
    and says whether to stop."""

    def __init__(self, begun: Callable[[int, int], None], ended: Callable[[int], bool]) -> None:
        self._begun = begun
        self._ended = ended

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._begun(state.global_step, state.max_steps)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop |= self._ended(round(state.epoch))
        if state.global_step >= state.max_steps or control.should_training_stop:
            # The model itself is written next.
            control.should_save = False


def validation_text(metrics: Metrics) -> str:
    """The metrics of the held-out problems as text."""
    if not metrics.steps:
        return "no held-out problems"
    figures = (("loss", metrics.loss), ("AUC", metrics.auc), ("accuracy", metrics.accuracy), ("Brier", metrics.brier))
    figures_text = ", ".join(
        f"{name} {figure:.4f}" for name, figure in figures if figure is not None and math.isfinite(figure)
    )
    return f"{metrics.steps:,} held-out steps ({metrics.good:,} good, {metrics.bad:,} bad): {figures_text}"


def _arguments(config: TrainConfig, chains: int) -> TrainingArguments:
    every = config.checkpoint_steps
    updates = config.epochs * math.ceil(math.ceil(chains / config.batch) / config.gradient_accumulation_steps)
    return TrainingArguments(
        output_dir=str(Path(config.out).expanduser() / CHECKPOINTS),
        num_train_epochs=config.epochs,
        per_device_train_batch_size=config.batch,
        gradient_accumulation_steps=config.gradient_accumulation_steps,
        learning_rate=config.learning_rate,
        lr_scheduler_type="linear",
        # The first update of a warm-up has a rate of 0. With few updates there is no warm-up, so that none is wasted.
        warmup_steps=config.warmup_ratio if updates * config.warmup_ratio >= 1 else 0,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        optim="adamw_torch",
        bf16=has_bfloat16(),
        gradient_checkpointing=config.gradient_checkpointing,
        seed=config.seed,
        save_strategy="epoch" if every is None else "steps",
        save_steps=every or 1,
        save_total_limit=1,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=not sys.stderr.isatty(),
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )


def _check_usable(training: StepDataset, config: TrainConfig) -> None:
    if training.items:
        return
    if training.left_out and not training.chains:
        raise InputError(
            f"{config.run_dir}: all {sum(training.left_out.values()):,} chains to train on are left out: "
            f"{_left_out(training)}; change these settings, or label other problems"
        )
    if not training.chains:
        raise InputError(
            f"{config.run_dir} has no chains to train on: label more problems, or hold out none with validation=0"
        )
    raise InputError(
        f"no step of the {training.chains} chains of {config.run_dir} can be trained on with target={config.target.value} "
        f"loss={config.loss.value}: {training.cut} of {training.steps} steps do not fit into max_length, and the others have "
        "no label, value or rollout; use another loss, another threshold, or more rollouts"
    )


def _left_out(dataset: StepDataset) -> str:
    return ", ".join(f"{count:,} by {setting}" for setting, count in sorted(dataset.left_out.items()))


def _warnings(dataset: StepDataset, loss: Loss) -> Iterator[str]:
    match loss:
        case Loss.hard:
            return place_warnings(dataset.places, what="label", instead="Train on values instead (loss=soft)")
        case Loss.soft:
            return place_warnings(
                dataset.places, what="value", instead="If more of them have a label, train on labels (loss=hard)"
            )


def _one_class(held_out: StepDataset) -> str:
    """A sentence if the labelled steps of the held-out problems are all good or all bad; else an empty text."""
    labels = [target.label for item in held_out.items for target in item.targets]
    good, bad = labels.count(POSITIVE), labels.count(NEGATIVE)
    if bool(good) == bool(bad):
        return ""
    there, lacking = (f"{good:,} good", "bad") if good else (f"{bad:,} bad", "good")
    return (
        f"the held-out problems have {there} steps and no {lacking} one, so there is no AUC, and the accuracy says nothing "
        f"about {lacking} steps; raise validation, choose another seed, or label more problems"
    )


def _counted(name: str, dataset: StepDataset, config: TrainConfig, max_length: int) -> str:
    kept = sum(len(item.encoded.ids) for item in dataset.items)
    cut = f"; {dataset.cut:,} steps do not fit into {max_length:,} tokens and are left out" if dataset.cut else ""
    if dataset.places.implied:
        cut += f"; {left_out_text(dataset.places.implied)}"
    if dataset.left_out:
        cut += f"; chains left out: {_left_out(dataset)}"
    return (
        f"{name:<10}  {len(dataset):,} of {dataset.chains:,} chains have steps for loss={config.loss.value}, with "
        f"{kept:,} tokens{cut}"
    )
