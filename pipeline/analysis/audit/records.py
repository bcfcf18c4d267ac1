"""`run.json` and commit records: readable, without holes, byte for byte what was written."""

import json

from pipeline.analysis.audit.ledger import Check, Ledger
from pipeline.config.recorded import Settings
from pipeline.core.errors import StoreError, Unreachable, UsageError
from pipeline.core.schemas import SCHEMA_VERSION
from pipeline.storage.commits import INPUT, UNIT, Chain, chains, commit_name, encoded_commit
from pipeline.storage.run_record import NAME, STAGED_INPUT, encoded_identity, recorded_identity, settings_copy
from pipeline.storage.storage import Storage

_LABEL_AGAIN = "start `label` on this run directory again"
_REMEDIES = {INPUT: f"{_LABEL_AGAIN}, which stages the input anew", UNIT: f"{_LABEL_AGAIN}, which redoes what it held"}
_MAKE_AGAIN = "make the edition again with `relabel` or `regrade`"


def remedy_for(kind: str) -> str:
    """What to do about damage to what a chain of this kind holds."""
    return _REMEDIES.get(kind, _MAKE_AGAIN)


def checked_settings(storage: Storage, ledger: Ledger) -> Settings | None:
    """What the run is the result of; where `run.json` is lost, from the copy beside the staged input. None without either.

    Raises UsageError for a run of another schema version.
    """
    ledger.count(Check.SETTINGS)
    copies = {found.chain_id: commit.settings for found in chains(storage, INPUT) for commit in found.commits}
    try:
        identity: Settings = recorded_identity(storage)
    except Unreachable:
        raise
    except StoreError:
        ledger.fault(Check.SETTINGS, NAME, "is missing or damaged", f"{_LABEL_AGAIN}, with the same settings")
        lost = [copy for copy in copies.values() if copy]
        return {key: json.loads(value) for key, value in lost[-1]} if lost else None
    if identity.get("schema") != SCHEMA_VERSION:
        raise UsageError(
            f"{storage.place} was written with schema {identity.get('schema')}, this is {SCHEMA_VERSION}: audit it with the "
            "version of stepvalue that wrote it"
        )
    if storage.read(NAME) != encoded_identity(identity):
        ledger.fault(Check.SETTINGS, NAME, "is not as it was written", "put back a copy of it")
    copy = copies.get(str(identity.get(STAGED_INPUT)))
    if copy and copy != settings_copy(identity):
        ledger.fault(Check.SETTINGS, NAME, "differs from the copy beside the staged input", "put back a copy of it")
    return identity


def check_chain(storage: Storage, ledger: Ledger, chain: Chain) -> None:
    """Find records that cannot be read or are not as they were written."""
    ledger.count(Check.RECORDS, chain.length)
    remedy = remedy_for(chain.kind)
    for name in chain.unreadable:
        ledger.fault(Check.RECORDS, name, "is missing or damaged", remedy)
    for commit in chain.commits:
        name = commit_name(commit)
        if storage.read(name) != encoded_commit(commit):
            ledger.fault(Check.RECORDS, name, "is not as it was written", f"move it away, then {remedy}")
