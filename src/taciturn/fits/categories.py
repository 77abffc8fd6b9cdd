"""The risk of each category of a variable in numbers, and as it is shown."""

from html import escape
from typing import TYPE_CHECKING, Any

import xarray as xr

from taciturn.figures import beside
from taciturn.fits.risk import RISK_BY
from taciturn.fits.table import columns_of, row_of
from taciturn.tables.spelling import legible, numbered

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["category_html", "category_lines", "category_records", "category_table"]


def category_table(
    fit: xr.DataTree, probability: float, independent: float | None
) -> "pd.DataFrame | None":
    """`draws_table` of each category of the variables that a fit was assessed by: one
    row a variable, category and measure, with the share of draws in which the category
    is ``empty``. None where there is no such variable. Labels of different types are
    texts: an index would take 1, 1.0 and True for the same.
    """
    import pandas as pd

    rows, names = [], []
    for group in fit.children:
        if not group.startswith(RISK_BY):
            continue
        variable, risk = group.removeprefix(RISK_BY), fit[group].to_dataset().compute()
        for at, label in enumerate(risk.indexes[variable].tolist()):
            own = risk.isel({variable: at})
            for measure, draws in own.data_vars.items():
                names.append((variable, label, str(measure)))
                rows.append([*row_of(draws, probability, independent), float(own["empty"])])
    if not rows:
        return None
    if len({type(label) for _, label, _ in names} - {str}) > 1:
        names = [(variable, str(label), measure) for variable, label, measure in names]
    index = pd.MultiIndex.from_tuples(names, names=["variable", "category", "measure"])
    return pd.DataFrame(rows, index=index, columns=[*columns_of(probability), "empty"])


def category_lines(table: "pd.DataFrame") -> list[str]:
    """What is printed of a `category_table`."""
    lines = []
    for title, frame in _frames(table).items():
        lines += [title, "", frame.to_string(float_format=_four_digits), ""]
    return [*lines, *(line for note in _notes(table) for line in (note, ""))]


def category_html(table: "pd.DataFrame") -> list[str]:
    """The same as fragments of HTML."""
    parts = []
    for title, frame in _frames(table).items():
        parts.append(f"<p>{escape(title)}</p>")
        parts.append(frame.to_html(border=0, float_format=_four_digits))
    return [*parts, *(f"<p>{note}</p>" for note in _notes(table))]


def category_records(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a `category_table`, with labels as texts, the same as elsewhere."""
    rows = table.reset_index()
    rows["category"] = [str(label) for label in rows["category"]]
    records = rows.to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in records]


def _frames(table: "pd.DataFrame") -> dict[str, "pd.DataFrame"]:
    """What is shown of each variable, by its title: a line a category."""
    import pandas as pd

    low, _, high = table.columns[2:5]
    frames = {}
    names = numbered(map(legible, map(str, table.index.unique("variable"))))
    for name, (_, rows) in zip(names, table.groupby("variable", sort=False), strict=True):
        r1, r2, tau1 = (rows.xs(measure, level="measure") for measure in ("R1", "R2", "tau1"))
        columns = {"R1": r1["mean"], "R2": r2["mean"], low: r2[low], high: r2[high]}
        frame = pd.DataFrame({**columns, "tau1": tau1["mean"], "empty": r2["empty"].map(_share)})
        frame.index = pd.Index(numbered(legible(str(label)) for _, label in frame.index))
        title = f"Each category of {name} as a table of its own"
        frames[f"{title}: means, and the interval of R2"] = frame
    return frames


def _notes(table: "pd.DataFrame") -> list[str]:
    """What `empty` means, where there is any such category."""
    if not (table["empty"] > 0).any():
        return []
    return ["empty: share of draws with nobody in the category, in which its risk is 0"]


def _four_digits(value: float) -> str:
    return f"{value:.4f}"


def _share(value: float) -> str:
    """A share of draws, which is 0 or 1 only where it is."""
    return beside(value, 0, 1, decimals=4)
