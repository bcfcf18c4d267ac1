"""The command `train`: trains a process or outcome reward model on a run's labels."""

from pipeline.cli.command import Command, interruptible, write_lines
from pipeline.core.errors import UsageError
from pipeline.core.missing_models import refuse_missing_folder
from pipeline.train.settings import EMBEDDED, TrainConfig


def _train(config: TrainConfig) -> int:
    try:
        from pipeline.train.result import NAME
        from pipeline.train.trainer import train, validation_text
    except ImportError as error:
        raise UsageError(
            f"{error}: install the train extra: pip install 'stepvalue[train]', or '.[train]' in a checkout"
        ) from error
    from pipeline.engines.embedded import embedded_model

    refuse_missing_folder("model", config.model)
    weights = str(embedded_model()) if config.model == EMBEDDED else config.model
    with interruptible():
        trained = train(config, weights=weights, progress=_progress)
    if trained.before:
        _progress(f"Nothing to do: {trained.out} is already trained with these settings.")
    _progress(f"{validation_text(trained.metrics)}; all figures are in {trained.out / NAME}")
    return 0


def _progress(line: str) -> None:
    write_lines([line])


TRAIN = Command(
    name="train",
    summary="train a process or outcome reward model on a run's labels",
    about=(
        "train: train a reward model on a run's labels. It scores the end of every step, and "
        "AutoModelForTokenClassification loads it. Start it again on the same `out` to continue."
    ),
    examples=(
        "train run_dir=out model=Qwen/Qwen2.5-Math-1.5B out=prm",
        "train run_dir=out model=embedded out=prm loss=hard epochs=1 layers=4",
        "train run_dir=out model=embedded out=orm target=outcome",
        "train run_dir=out model=org/name out=prm min_p_outcome=0.1 min_root_value=0.1",
    ),
    notes="""\
Prints a line an epoch, with figures on problems that are held out. It goes on from the last checkpoint; a finished model is
left as it is.
""",
    most_used=("run_dir", "model", "out", "target", "loss", "epochs", "learning_rate", "validation"),
    schema=TrainConfig,
    run=_train,
)
