"""The cell-key method, as an attacker knows it who has its perturbation table."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import xarray as xr

from taciturn.attack.mechanisms.base import Floats, Integers, Mechanism
from taciturn.tables.transitions import check_perturbation_table

__all__ = ["CellKeys"]


@dataclass(frozen=True, eq=False, repr=False)
class CellKeys(Mechanism):
    r"""The cell-key method, as `cell_key` and `cell_key_records` apply it.

    .. math::

        P(y \mid x) = p(y \mid x) \quad (x < L), \qquad
        P(y \mid x) = p(L + y - x \mid L) \quad (x \ge L)

    with `p` the perturbation table and `L` its last row. Keys are uniform, and no
    record is in two cells of a table, so that this is the whole likelihood of a table.
    It is not that of a table with its totals, see `Perturbed`.

    Parameters
    ----------
    perturbation : DataArray
        Transition probabilities as `perturbation_table` returns them, dims ``(original,
        perturbed)``.

    Raises
    ------
    ParameterError
        A perturbation table that `cell_key` refuses.

    References
    ----------
    Fraser & Wooton (2005), A proposed method for confidentialising tabular output to
    protect against differencing, UNECE/Eurostat work session on statistical data
    confidentiality; Enderle, Giessing & Tent (2020), Calculation of risk probabilities
    for the cell key method, Privacy in Statistical Databases, Springer, 151-165.

    Examples
    --------
    >>> import numpy as np, taciturn as tc
    >>> keys = tc.attack.CellKeys(tc.perturbation.perturbation_table(2, 1))
    >>> keys.support(1)
    (1, 3)
    >>> np.exp(keys.log_probability(1, np.arange(5))).round(3).tolist()
    [0.0, 0.366, 0.245, 0.064, 0.0]
    """

    perturbation: xr.DataArray

    keyed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _ = self._transitions

    @cached_property
    def _transitions(self) -> tuple[Floats, Integers]:
        """For each row where the keys of each column begin, with the end of the last;
        and the counts of the columns.
        """
        cumulated, columns = check_perturbation_table(self.perturbation)
        return np.insert(np.minimum(cumulated, 1.0), 0, 0.0, axis=1), columns

    @property
    def gives(self) -> str:
        """Counts that the perturbation table reaches."""
        return f"what {self!r} gives"

    def support(self, released: int) -> tuple[int, float] | None:
        """From the least to the most of the counts that give the released one."""
        ends, columns = self._transitions
        last = len(ends) - 1
        true = np.union1d(np.arange(last), last + released - columns)
        true = true[true >= 0]
        possible = true[self._probability(released, true) > 0]
        return (int(possible[0]), int(possible[-1])) if possible.size else None

    def log_probability(self, released: int, true: Integers) -> Floats:
        """The logarithm of the entry of the perturbation table."""
        with np.errstate(divide="ignore"):
            return np.log(self._probability(released, true))

    def _probability(self, released: int, true: Integers) -> Floats:
        low, high = self.keys_of(released, true)
        return high - low

    def keys_of(self, released: int, true: Integers) -> tuple[Floats, Floats]:
        """The interval of cell keys that give the released count of each of these true
        ones, in ``[0, 1]``; both ends are equal where none does.
        """
        ends, columns = self._transitions
        row = np.minimum(true, len(ends) - 1)
        wanted = released - true + row
        place = np.minimum(np.searchsorted(columns, wanted), len(columns) - 1)
        low = ends[row, place]
        return low, np.where(columns[place] == wanted, ends[row, place + 1], low)

    def __repr__(self) -> str:
        rows, _ = self._transitions[0].shape
        return f"{type(self).__name__}(a perturbation table of the counts 0 to {rows - 1})"
