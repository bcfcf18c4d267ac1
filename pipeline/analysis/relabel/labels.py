"""The `relabel` command: labels by another rule or interval, from the verdicts that there are."""

from pipeline.analysis.relabel.edition import Judged, StoredUnit, make_edition, same_edition
from pipeline.config.changes import RelabelConfig
from pipeline.config.recorded import given
from pipeline.core.progress import Edited
from pipeline.storage.place import held, storage_at
from pipeline.storage.stored_run import finished_run, refuse_unfinished


def relabel(config: RelabelConfig) -> Edited:
    """Make labels with the estimator that is asked for. Raises UsageError for no run or an unfinished one, StoreError,
    RunConflict."""
    storage = storage_at(config.run_dir)
    refuse_unfinished(storage)
    with held(storage, lock=config.lock):
        run = finished_run(storage)
        settings = {**run.settings, **given("estimator", config.estimator)}
        if settings == run.settings:
            return same_edition(storage, run)
        return make_edition(storage, run, settings, _as_judged)


def _as_judged(unit: StoredUnit) -> Judged:
    return Judged(chains=unit.chains, verdicts=unit.verdicts)
