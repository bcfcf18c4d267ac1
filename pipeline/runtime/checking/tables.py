"""Checked chains as rows of `schemas.FINDINGS`."""

from collections.abc import Sequence

import pyarrow as pa

from pipeline.core.schemas import FINDINGS
from pipeline.core.tables import storable
from pipeline.verifiers.base import CheckedStep


def findings_table(chains: pa.Table, checked: Sequence[Sequence[CheckedStep]], *, verifier: str) -> pa.Table:
    """The rows of checked chains, one for each step. `chains`: of the schema CHAINS, in the order of `checked`."""
    known = [chains[name].to_pylist() for name in ("row", "chain_id", "problem_id")]
    rows = [
        {
            "row": row,
            "chain_id": chain_id,
            "problem_id": problem_id,
            "step_index": index,
            "verifier": verifier,
            "verdict": step.finding.verdict.value,
            "covers": step.finding.covers.value,
            "evidence": storable(step.finding.evidence),
            "fault": step.fault and step.fault.value,
        }
        for row, chain_id, problem_id, steps in zip(*known, checked, strict=True)
        for index, step in enumerate(steps, start=1)
    ]
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in FINDINGS]
    return pa.Table.from_arrays(columns, schema=FINDINGS)
