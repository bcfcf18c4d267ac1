"""Reads the file of human labels, and refuses one whose labels cannot be meant as they are."""

from collections.abc import Sequence

from pipeline.analysis.agree.human import HumanChain, MiscountedRow, Unusable, human_chains, original_chains, text_key
from pipeline.analysis.settings import AgreeConfig
from pipeline.config.choices import Layout
from pipeline.core.errors import InputError
from pipeline.core.formatting import format_count
from pipeline.data.rows import read_rows


def read_humans(config: AgreeConfig) -> tuple[list[HumanChain], list[Unusable]]:
    """The chains with human labels, and the rows that have none. Raises InputError if no row has one."""
    humans: list[HumanChain] = []
    unusable: list[Unusable] = []
    rows = read_rows(config.data.path, config.data.limit)
    for found in human_chains(rows, config.data, config.column, config.neutral):
        if isinstance(found, Unusable):
            unusable.append(found)
        else:
            humans.append(found)
    if not humans:
        reason = (
            f"; line {unusable[0].location.line} of {unusable[0].location.file}: {unusable[0].detail}"
            if unusable
            else ""
        )
        raise InputError(
            f"data.path: none of the {len(unusable)} rows of {config.data.path} is a chain with a human label{reason}"
        )
    return humans, unusable


def read_originals(config: AgreeConfig, humans: Sequence[HumanChain]) -> list[HumanChain]:
    """PRMBench: the original processes that are not among `humans` already. Empty for other layouts."""
    if config.data.layout is not Layout.prmbench:
        return []
    taken = {text_key(human) for human in humans}
    rows = read_rows(config.data.path, config.data.limit)
    return [chain for chain in original_chains(rows, config.data) if text_key(chain) not in taken]


def refuse_miscounted(config: AgreeConfig, humans: Sequence[HumanChain], unusable: Sequence[Unusable]) -> None:
    """Raise InputError where labels seem to be counted from another number than the layout says: some rows fit only that
    way, and no chain shows the opposite.

    First errors counted from 1 never name step 0, or never say -1 where 0 stands for "no error". PRMBench's error steps counted
    from 0 never name a last step.
    """
    strange = [row for row in unusable if isinstance(row, MiscountedRow)]
    if not strange:
        return
    place = f"line {strange[0].location.line} of {strange[0].location.file}"
    who = f"{format_count(len(strange), 'row')} {'names' if len(strange) == 1 else 'name'}"
    if config.data.layout is Layout.prmbench:
        if not any(human.goods[-1] is False for human in humans):
            raise InputError(
                f"data.path: the error steps of {config.data.path} seem to be counted from 0: {who} step 0, as {place}, and "
                "none names a last step. PRMBench counts from 1: add 1 to each"
            )
        return
    firsts = {human.first_error for human in humans}
    if not {0, -1} <= firsts:
        raise InputError(
            f"data.path: the labels of {config.data.path} seem to be counted from 1: {who} the step after the last one, as "
            f"{place}, and no label is {0 if 0 not in firsts else -1}. Steps are counted from 0, and -1 means no error: "
            "subtract 1 from each"
        )
