"""The tracker that the settings ask for."""

from pipeline.config.choices import Tracker
from pipeline.core.errors import UsageError
from pipeline.runtime.track.base import Sink


def tracker_for(kind: Tracker) -> Sink | None:
    """None where none is asked for. Raises UsageError where its package is not there, or it cannot be used."""
    try:
        match kind:
            case Tracker.tensorboard:
                from pipeline.runtime.track.tensorboard import TensorBoard

                return TensorBoard()
            case Tracker.mlflow:
                from pipeline.runtime.track.mlflow import Mlflow

                return Mlflow()
            case Tracker.wandb:
                from pipeline.runtime.track.wandb import WeightsAndBiases

                return WeightsAndBiases()
            case Tracker.none:
                return None
    except ImportError as error:
        raise UsageError(
            f"run.track={kind.value} needs a package that is not installed ({error}): pip install 'stepvalue[track]', or "
            "'.[track]' in a checkout"
        ) from error
