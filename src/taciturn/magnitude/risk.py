"""The risk of a whole magnitude table: few cells with many contributors, and
contributors who dominate.
"""

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.magnitude.cells import cells_of
from taciturn.schema import cell_label
from taciturn.validate import names_of, one_of

__all__ = ["magnitude_risk"]

_VARIANTS: Final = ("consistent", "handbook")


def magnitude_risk(
    table: xr.Dataset,
    *,
    dim: str | Sequence[str] | None = None,
    variant: Literal["consistent", "handbook"] = "consistent",
) -> xr.Dataset:
    r"""Risk of a magnitude table: how few contribute, and how much the largest hold.

    With :math:`c_i` contributors to cell `i`, :math:`n = \sum_i c_i` and :math:`x_{i1}
    / X_i` the share of the largest, averaged over the `m` cells that have a share,

    .. math::

        r = \frac{1}{2} \Bigl(1 - \frac{H}{\log n}
            + \frac{1}{m} \sum_i \frac{x_{i1}}{X_i}\Bigr), \qquad
        H = -\sum_i \frac{c_i}{n} \log \frac{c_i}{n}

    Parameters
    ----------
    table : Dataset
        Of `tabulate_magnitude` or `tabulate_margins`.
    dim : str or sequence of str, optional
        Variables to sum over, by default all. Fewer give the risk of each row or column
        as a table of its own.
    variant : {"consistent", "handbook"}
        The formula above, which rises with the share of the largest contributors, or,
        for reproduction, the one that the handbook prints, which falls with it,
        :math:`1 - \frac{1}{2}(H / \log n + \frac{1}{m} \sum_i x_{i1} / X_i)`.

    Returns
    -------
    Dataset
        ``risk`` in ``[0, 1]``; ``entropy_term``, :math:`1 - H / \log n`, and
        ``mean_share``, both in ``[0, 1]``.

    Raises
    ------
    TableError
        Not a magnitude table; a row or column without a contributor, or with nothing
        but zeros.
    ParameterError
        Unknown `dim` or `variant`.

    Notes
    -----
    The base of the logarithm cancels. One contributor (`n` = 1) takes :math:`H / \log
    n` as 0, so that the risk is 1, and 1/2 as the handbook prints it. Cells without
    contributors, or with contributions of zero only, have no share and are left out of
    the mean. One edition of the handbook calls `n` the total number of cells; the
    shares :math:`c_i / n` add up to 1 only if it is the number of contributors.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, Section 4.6, eq.
    (4.6.1)-(4.6.2) and the formula after them.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame({"area": list("AABB"), "turnover": [75, 25, 50, 50]})
    >>> table = tc.tabulate_magnitude(firms, "area", "turnover")
    >>> risk = tc.magnitude.magnitude_risk(table)
    >>> float(risk["risk"])  # ((1 - log 2 / log 4) + (0.75 + 0.5) / 2) / 2
    0.5625
    """
    one_of(variant, "variant", _VARIANTS)
    cells_of(table)
    if not table.sizes["rank"]:
        raise TableError("the risk of a table needs the largest contribution to each cell")
    variables = [str(dim) for dim in table["total"].dims]
    over = variables if dim is None else names_of(dim, "dim")
    if not set(over) <= set(variables) or len(set(over)) < len(over) or (variables and not over):
        raise ParameterError(
            f"dim must name variables of the table, {variables}, each once; got {over}"
        )
    counts, shares = table["contributors"], table["share"].isel(rank=0, drop=True)
    number = counts.sum(over)
    for lacking, what in (
        (number == 0, "no contributor"),
        (shares.notnull().sum(over) == 0, "only zeros"),
    ):
        if lacking.any():
            position = tuple(int(i) for i in np.argwhere(lacking.values)[0])
            where = cell_label(lacking, position) or "the table"
            raise TableError(f"the risk of a table needs contributions: {where} has {what}")
    frequency = counts / number
    entropy = -(frequency * np.log(frequency.where(frequency > 0, 1))).sum(over)
    evenness = (entropy / np.log(number.where(number > 1, 2))).where(number > 1, 0).clip(0, 1)
    mean_share = shares.mean(over)
    term = 1 - evenness
    risk = (term + mean_share) / 2 if variant == "consistent" else 1 - (evenness + mean_share) / 2
    return xr.Dataset(
        {"risk": risk, "entropy_term": term, "mean_share": mean_share}, attrs={"variant": variant}
    )
