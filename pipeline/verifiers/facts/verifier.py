"""The verifier `facts`: a step is refuted by a claim that a table of the user's has otherwise.

It never proves a whole step. Everything doubtful is unknown: see `claims` for what is read, and what is left alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from pipeline.core.formatting import format_count
from pipeline.data.facts.table import Entry, Table, contents_of, contradiction, fit_of_entry, stated
from pipeline.data.numbers import Fit
from pipeline.verifiers.base import MOST_EVIDENCE, UNKNOWN, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.facts.claims import FRAMED, OTHER_WORLD, REVOKED, UNSURE, Claim, claims_of
from pipeline.verifiers.sentences import in_a_line, several
from pipeline.verifiers.settings import FactsConfig

SETTING = "verifier.table"
_MOST_OF_CONTEXT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A claim about a key of the table. `fit`: None where the table contradicts itself."""

    claim: Claim
    entry: Entry
    fit: Fit | None


class Facts(Verifier):
    """Claims of the form "the ATTRIBUTE of ENTITY is VALUE" against the table of `verifier.table`."""

    Config = FactsConfig
    settings: FactsConfig

    def __init__(self, settings: FactsConfig) -> None:
        super().__init__(settings)
        self._table = Table(settings.table, SETTING)
        self._keys_of_problem = lru_cache(maxsize=64)(self._claimed_keys)

    @classmethod
    def inputs(cls, settings: FactsConfig) -> dict[str, str]:
        """The content of the table, which findings depend on. Raises InputError and StoreError where it cannot be used."""
        return {"table_sha256": contents_of(settings.table, SETTING).sha256}

    @classmethod
    def warnings(cls, settings: FactsConfig) -> tuple[str, ...]:
        """That rows contradict each other. Raises as `inputs` does."""
        found = contents_of(settings.table, SETTING)
        if not found.contradictions:
            return ()
        return (
            f"{SETTING}: {settings.table} contradicts itself in {format_count(found.contradictions, 'key')}, such as: "
            f"{found.example}. Claims about them are unknown: correct the rows, or write several right values into one row",
        )

    def verify(self, step: StepInContext) -> Finding:
        revoked = REVOKED.search(step.problem[:_MOST_OF_CONTEXT]) or REVOKED.search(step.step)
        if len(step.step) > self.settings.most_characters or revoked:
            return UNKNOWN
        # What a step quotes or prints in a block is no claim of it.
        judged = list(self._judged(re.sub(r"```.*?(?:```|\Z)", "\n", step.step, flags=re.DOTALL)))
        held = [each for each in judged if each.fit is Fit.EQUAL]
        wrong = [each for each in judged if each.fit is Fit.APART and not self._is_doubtful(each, held, step)]
        if wrong or held:
            return _finding(StepVerdict.REFUTED if wrong else StepVerdict.HOLDS, map(_evidence, wrong or held))
        unclear = [each for each in judged if each.fit is None]
        return _finding(StepVerdict.UNKNOWN, (f"in the table, {contradiction(each.entry)}" for each in unclear))

    def _judged(self, text: str) -> Iterator[_Judged]:
        """The claims of a text about keys of the table, without those whose sentence makes them doubtful."""
        for claim in claims_of(text):
            if UNSURE.search(claim.sentence) or FRAMED.search(claim.sentence):
                continue
            if (entry := self._entry(claim)) is not None:
                yield _Judged(claim=claim, entry=entry, fit=self._fit(claim, entry))

    def _entry(self, claim: Claim) -> Entry | None:
        """What the table says of the subject of a claim. None where no reading, or more than one key, is in the table."""
        found: dict[tuple[str, str], Entry] = {}
        for attribute, entity in claim.readings:
            attributes = self._table.attributes(attribute)
            entities = self._table.entities(entity) if attributes else []
            if len(entities) > 1:
                return None
            for key in product(entities, attributes):
                if entry := self._table.entry(*key):
                    found[key] = entry
        return next(iter(found.values())) if len(found) == 1 else None

    def _fit(self, claim: Claim, entry: Entry) -> Fit | None:
        """How a claim agrees with its entry, in the way to read its value that agrees best."""
        if entry.other is not None:
            return None
        new = self.settings.refute_new_names
        fits = [
            fit_of_entry(each, entry, self._table, loosely=claim.loosely, refute_new_names=new) for each in claim.values
        ]
        return next((fit for fit in (Fit.EQUAL, Fit.APART) if fit in fits), Fit.DOUBTFUL)

    def _is_doubtful(self, judged: _Judged, held: list[_Judged], step: StepInContext) -> bool:
        """Whether a claim that the table has otherwise may be of the past or of another world, or given."""
        key = judged.entry.key
        # The sentence may also have the right value: "Canberra, which replaced Melbourne".
        right = "|".join(map(re.escape, judged.entry.values))
        context = "\n".join((step.problem, *step.earlier, step.step))[-_MOST_OF_CONTEXT:]
        return (
            judged.claim.past
            or re.search(rf"(?<!\w)(?:{right})(?!\w)", judged.claim.sentence, re.IGNORECASE) is not None
            or any(each.entry.key == key for each in held)
            # A point may group digits: 8.849 for 8849.
            or re.search(r"\d\.\d{3}(?!\d)", judged.claim.values[-1]) is not None
            or OTHER_WORLD.search(context) is not None
            or key in self._keys_of_problem(step.problem[:_MOST_OF_CONTEXT])
        )

    def _claimed_keys(self, problem: str) -> frozenset[tuple[str, str]]:
        """The keys of which a problem itself states a value that the table has otherwise."""
        return frozenset(each.entry.key for each in self._judged(problem) if each.fit is not Fit.EQUAL)


def _finding(verdict: StepVerdict, evidence: Iterator[str]) -> Finding:
    return Finding(verdict=verdict, evidence=several(list(dict.fromkeys(evidence)))[:MOST_EVIDENCE])


def _evidence(judged: _Judged) -> str:
    """What the table says, and what the claim says where it is another value."""
    source = f" ({in_a_line(judged.entry.source)})" if judged.entry.source else ""
    other = "" if judged.fit is Fit.EQUAL else f", not {in_a_line(judged.claim.values[-1], 80)}"
    return f"{in_a_line(stated(judged.entry))}{other}{source}"
