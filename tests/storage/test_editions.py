"""The current labels are those of the newest edition as long as its log is unchanged."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.ids import content_id
from pipeline.storage.commits import EDITION, UNIT, Commit, CommitState, RecordSequence
from pipeline.storage.editions import (
    EDITION_SEQUENCE,
    current_edition,
    edition_command,
    log_digest,
    new_edition,
    own_editions,
    whose_labels,
)
from pipeline.storage.shards import ShardRecord
from tests import strategies as our

UNITS = ("1" * 20, "2" * 20)
SETTINGS = {"estimator.rule": "any", "estimator.confidence": 0.95}


def shard(table: str, unit_id: str, content: str) -> ShardRecord:
    file = f"{table}/{table}-{content_id(table, unit_id)}-{content * 12}.parquet"
    return ShardRecord(table=table, file=file, sha256=content * 64, rows=1)


def whole(unit_id: str, number: int = 0) -> Commit:
    shards = (shard("rollouts", unit_id, "a"), shard("labels", unit_id, "a"))
    return Commit(kind=UNIT, sequence_id=unit_id, number=number, state=CommitState.WHOLE, shards=shards)


WHOLES = {unit_id: whole(unit_id) for unit_id in UNITS}
NONE = RecordSequence(kind=EDITION, sequence_id=EDITION_SEQUENCE)


def added(editions: RecordSequence, commit: Commit) -> RecordSequence:
    return replace(editions, commits=(*editions.commits, commit), length=editions.length + 1)


def test_an_edition_of_label_itself_is_none_of_the_user() -> None:
    own = added(NONE, new_edition(NONE, WHOLES, SETTINGS, [], learned_from=7))
    users = added(own, new_edition(own, WHOLES, SETTINGS, [], command="relabel"))
    assert [edition_command(each) for each in (None, *users.commits)] == ["", "", "relabel"]
    assert own_editions(users) == [*own.commits]
    assert own.commits[0].learned_from == 7
    grown = {**WHOLES, UNITS[0]: whole(UNITS[0], 3)}
    assert [whose_labels(editions, WHOLES) for editions in (own, users)] == ["", "of edition 1 (relabel)"]
    assert whose_labels(users, grown).startswith("the run's own: edition 1 is damaged, or rollouts were added")
    assert whose_labels(added(users, new_edition(users, grown, SETTINGS, [])), grown) == whose_labels(users, grown)
    assert whose_labels(own, grown) == ""


def test_an_edition_whose_record_names_no_command_is_of_a_user() -> None:
    edition = new_edition(NONE, WHOLES, SETTINGS, [])
    earlier = replace(edition, settings=tuple(each for each in edition.settings if each[0] != "command"))
    assert edition_command(earlier) == "relabel"


def test_a_damaged_edition_is_none_and_an_older_one_does_not_come_back() -> None:
    first = added(NONE, new_edition(NONE, WHOLES, SETTINGS, [shard("labels", unit_id, "b") for unit_id in UNITS]))
    newer = [shard("labels", unit_id, "c") for unit_id in UNITS]
    both = added(first, new_edition(first, WHOLES, SETTINGS, newer))
    current = current_edition(both, WHOLES)
    assert current is not None
    assert current.number == 1
    word = Commit(kind=EDITION, sequence_id=EDITION_SEQUENCE, number=2, state=CommitState.VOID, void=(newer[1].file,))
    assert current_edition(added(both, word), WHOLES) is None


@given(st.dictionaries(our.hex_ids, st.integers(0, 9), min_size=1, max_size=4), st.data())
def test_the_digest_reports_any_two_logs_apart(numbers: dict[str, int], data: st.DataObject) -> None:
    wholes = {unit_id: whole(unit_id, number) for unit_id, number in numbers.items()}
    shuffled = data.draw(st.permutations(sorted(wholes)))
    assert log_digest({unit_id: wholes[unit_id] for unit_id in shuffled}) == log_digest(wholes)
    changed = data.draw(st.sampled_from(sorted(wholes)))
    assert log_digest({**wholes, changed: whole(changed, numbers[changed] + 1)}) != log_digest(wholes)
    assert log_digest({key: each for key, each in wholes.items() if key != changed}) != log_digest(wholes)
