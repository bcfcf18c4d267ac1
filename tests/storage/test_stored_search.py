"""Commands find the tables of a run of `search`."""

from pathlib import Path

from pipeline.core.tables import CANDIDATES, SEARCHES
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_search import stored_search
from tests.searches.handmade import Ended, Searched, search_run

PROBLEMS = [
    Searched(problem="one", candidates=[Ended(), Ended(right=False, answer="8")], chosen=1),
    Searched(problem="two", candidates=[], chosen=None, confidence=None),
    Searched(problem="three", candidates=[Ended(right=None)]),
]


def test_the_tables_of_all_units_come_in_the_order_of_the_input(tmp_path: Path) -> None:
    stored = stored_search(LocalStorage(search_run(tmp_path / "run", PROBLEMS, method="beam", n=8, accept=0.9)))
    assert (stored.method, stored.n, stored.accept) == ("beam", 8, 0.9)
    searches = stored.frame(SEARCHES, ["problem", "verdict", "stopped"])
    assert searches.rows() == [("one", "incorrect", "done"), ("two", None, "no_chain"), ("three", "timeout", "done")]
    candidates = stored.frame(CANDIDATES)
    assert candidates["chosen"].to_list() == [False, True, True]
    assert candidates["verdict"].to_list() == ["correct", "incorrect", "timeout"]
