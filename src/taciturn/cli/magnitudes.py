"""What ``taciturn rules`` reads: records, or cells that are aggregated already."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taciturn.cli.files import check_tables, hierarchies_of, read_instructions
from taciturn.cli.working import working
from taciturn.files import ARGUS_ENDINGS, METADATA_ENDING, TableFile, check_readable

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Inputs", "check_inputs", "read_inputs"]

_OF_RECORDS = ("contributor", "holding", "sampling_weights", "request")


@dataclass(frozen=True)
class Inputs:
    """The margins of each quantity, their variables, and what is said of cells."""

    variables: tuple[str, ...]
    tables: "Mapping[str, Mapping[tuple[str, ...], xr.Dataset]]"
    apriori: "pd.DataFrame | None"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.tables)})"


def check_inputs(
    microdata: TableFile,
    metadata: Path | None,
    hierarchy: Iterable[TableFile],
    apriori: Path | None,
    given: Mapping[str, Any],
) -> None:
    """Raise where options exclude each other, or files cannot be what they are named
    for.
    """
    told = {name for name in _OF_RECORDS if given[name] is not None}
    told |= {"missing"} if given["missing"] != "refuse" else set()
    if metadata is not None:
        told |= {name for name in ("variables", "aggregated", "waiver") if given[name] is not None}
        told |= {"decimals"} if given["decimals"] else set()
        told |= {"hierarchy"} if hierarchy else set()
        told |= {"sep"} if given["sep"] is not None else set()
        _refuse(told, "--metadata says what the columns are: {} does not apply")
        if len(given["values"]) > 1:
            raise click.UsageError("--metadata is of one --value, whose largest scores it names")
        check_tables(apriori=apriori)
        for path, endings in ((microdata, ARGUS_ENDINGS), (metadata, (METADATA_ENDING,))):
            if not isinstance(path, Path):
                raise click.UsageError("--metadata is of a table in a file, not of '-'")
            check_readable(path, endings)
        return
    if given["variables"] is None or not given["values"]:
        raise click.UsageError(
            f"Missing option '--{'value' if given['variables'] else 'variables'}'."
        )
    _check_roles(given, told)
    check_tables(microdata, hierarchies=hierarchy, apriori=apriori)


def _check_roles(given: Mapping[str, Any], told: set[str]) -> None:
    """Raise where an option is given too often, or has nothing to apply to."""
    values, waiver = given["values"], given["waiver"]
    if len(set(values)) < len(values):
        raise click.UsageError("--value must name each quantity once")
    if len(given["decimals"]) not in (0, 1, len(values)):
        raise click.UsageError("--decimals is given once, or once for each --value")
    if given["aggregated"] is not None:
        _refuse(told, "--aggregated has no records to which {} could apply")
        if len(values) > 1:
            raise click.UsageError("--aggregated names the largest contributions of one --value")
    if waiver is not None and len(waiver) != (1 if given["aggregated"] is None else 2):
        raise click.UsageError("--waiver names one column of records, or two with --aggregated")


def _refuse(told: set[str], reason: str) -> None:
    if told:
        raise click.UsageError(reason.format(f"--{min(told).replace('_', '-')}"))


def read_inputs(
    microdata: TableFile,
    metadata: Path | None,
    hierarchy: Iterable[TableFile],
    apriori: Path | None,
    total: str,
    given: Mapping[str, Any],
) -> Inputs:
    """The table and its margins for each quantity, and what is said of single cells."""
    written = {name: given[name] for name in ("sep", "encoding")}
    with working("tabulating the records"):
        if metadata is not None:
            variables, tables, told = _argus(microdata, metadata, given)
        else:
            variables, told = given["variables"], None
            levels = hierarchies_of(hierarchy, variables, **written)
            tables = {
                name: _tables(microdata, name, decimals, levels, total, given)
                for name, decimals in _decimals(given).items()
            }
    first = next(iter(next(iter(tables.values())).values()))
    if first.attrs.get("dropped"):
        lost = first.attrs["dropped"]
        click.echo(f"taciturn: {lost:,} records that lack a label are left out", err=True)
    rows = read_instructions(apriori, variables, total=total, **written)
    return Inputs(variables, tables, _joined(told, rows, variables))


def _decimals(given: Mapping[str, Any]) -> dict[str, int]:
    """The decimal places of each quantity."""
    values, decimals = given["values"], given["decimals"] or (0,)
    return dict(
        zip(values, decimals * len(values) if len(decimals) == 1 else decimals, strict=True)
    )


def _argus(
    table: TableFile, metadata: Path, given: Mapping[str, Any]
) -> "tuple[tuple[str, ...], dict[str, Any], pd.DataFrame | None]":
    """The variables, the margins and the instructions of a table of τ-ARGUS."""
    from taciturn.magnitude import read_argus

    value = given["values"][0] if given["values"] else None
    tables, told = read_argus(Path(str(table)), metadata, value=value, encoding=given["encoding"])
    variables, first = next(iter(tables.items()))
    return variables, {str(first.attrs["value"]): tables}, told


def _tables(
    microdata: TableFile,
    value: str,
    decimals: int,
    levels: Any,
    total: str,
    given: Mapping[str, Any],
) -> "dict[tuple[str, ...], xr.Dataset]":
    """The table of a quantity and its margins, from records or from a row for each
    cell.
    """
    from taciturn.magnitude import read_margins, tabulate_margins

    written = {name: given[name] for name in ("sep", "encoding")}
    variables, waiver = given["variables"], given["waiver"]
    shared: dict[str, Any] = {"decimals": decimals, "hierarchies": levels, **written}
    if given["aggregated"] is None:
        roles = {name: given[name] for name in (*_OF_RECORDS, "missing", "largest")}
        shared |= roles | {"waiver": waiver[0] if waiver else None}
        return tabulate_margins(microdata, variables, value, **shared)
    contributors, *largest = given["aggregated"]
    shared |= {"contributors": contributors, "largest": largest, "waiver": waiver}
    return read_margins(microdata, variables, value, total=total, **shared)


def _joined(
    told: "pd.DataFrame | None", rows: "pd.DataFrame | None", variables: Sequence[str]
) -> "pd.DataFrame | None":
    """What a table says of its cells, and what else is said of them: another cost or
    protection level takes the place of the table's.
    """
    import pandas as pd

    from taciturn.tables.values import is_missing

    if told is None or rows is None:
        return rows if told is None else told

    def cells(frame: pd.DataFrame) -> list[tuple[str, ...]]:
        own = frame.reindex(columns=list(variables)).itertuples(index=False)
        return [tuple("" if is_missing(label) else str(label) for label in row) for row in own]

    told, of_table, of_rows = told.copy(), cells(told), cells(rows)
    for names in (["cost"], ["lower", "upper"]):
        if set(names) <= set(rows) & set(told):
            given = zip(of_rows, rows[names[0]], strict=True)
            replaced = {cell for cell, value in given if not is_missing(value)}
            told.loc[[cell in replaced for cell in of_table], names] = None
    return pd.concat([told, rows], ignore_index=True)
