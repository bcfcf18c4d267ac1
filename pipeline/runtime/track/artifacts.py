"""Sends a finished export to a tracker, as an artifact of the run that `label` made there."""

from pathlib import Path

from pipeline.config.choices import Tracker
from pipeline.core.errors import UploadError, UsageError, named
from pipeline.runtime.track.tracking import TRACK, Sink, folder_of, tracker_for
from pipeline.storage.location import last_part


def artifact_tracker(kind: Tracker) -> Sink | None:
    """The tracker of the settings; None for `none`. Raises UsageError for one that keeps no files or cannot be used."""
    if kind is Tracker.tensorboard:
        raise UsageError("track=tensorboard: TensorBoard keeps no files; take track=mlflow or track=wandb")
    with named({TRACK: "track"}):
        return tracker_for(kind)


def send_artifact(sink: Sink, kind: Tracker, run_dir: str, export: Path) -> None:
    """Log the files of an export. Raises UploadError; the export stays."""
    try:
        sink.artifact(last_part(run_dir), folder_of(run_dir), export)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UploadError(
            f"{export} holds the whole export, but track={kind.value} failed: {reason}. To send it again, start the same "
            "command with overwrite=true"
        ) from error
