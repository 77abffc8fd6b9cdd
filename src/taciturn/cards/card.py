"""The content of a model card."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr

from taciturn.errors import FileFormatError, TableError
from taciturn.estimators import Estimator
from taciturn.schema import table_dims
from taciturn.tables.datasets import load_dataset
from taciturn.tables.labels import labels_of
from taciturn.tables.margins import margin
from taciturn.tables.reading import read_table
from taciturn.tables.sampling import draw_sample

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "COLUMNS",
    "Calibration",
    "Card",
    "CardTable",
    "Run",
    "cells_mask",
    "table_hash",
]

COLUMNS: Final = ("mean", "sd", "2.5%", "50%", "97.5%", "mcse")
"""Statistics of each quantity."""


@dataclass(frozen=True)
class CardTable:
    """The table of a card, and how the sample was drawn from it.

    Attributes
    ----------
    dataset : str or None
        Name of a packaged table.
    file : str or None
        Otherwise a CSV or Parquet file in the card's folder or below.
    citation : str
        Source of the table.
    hash : str or None
        `table_hash` of the table, if the table is public.
    fraction, random_seed : float and int, or None
        The sample is ``draw_sample(table, fraction=fraction,
        random_seed=random_seed)``; without them the table itself.
    sample_size : int
        `n`.
    sample_hash : str or None
        `table_hash` of the sample, if the table is public.
    population_size : int
        `N`.
    structural_zeros : tuple of tuples
        Cells that cannot be filled, by their labels in the order of the table's
        variables.
    known_margins : tuple of str
        Variables over which the fit was given the population's table.
    known_counts : tuple of int
        Counts of that table in row-major order, if the sample is the table itself and
        the population therefore not in it.
    """

    dataset: str | None
    file: str | None
    citation: str
    hash: str | None
    fraction: float | None
    random_seed: int | None
    sample_size: int
    sample_hash: str | None
    population_size: int
    structural_zeros: tuple[tuple[Any, ...], ...] = ()
    known_margins: tuple[str, ...] = ()
    known_counts: tuple[int, ...] = ()

    @property
    def source(self) -> str:
        """Name of the packaged table, or the file."""
        return str(self.dataset or self.file)

    def __str__(self) -> str:
        drawn = (
            ""
            if self.fraction is None
            else f", fraction {self.fraction:g}, seed {self.random_seed}"
        )
        zeros = f", {len(self.structural_zeros)} structural zeros" if self.structural_zeros else ""
        known = f", known margins of {', '.join(self.known_margins)}" if self.known_margins else ""
        return (
            f"{self.source}, n = {self.sample_size} of N ="
            f" {self.population_size}{drawn}{zeros}{known}"
        )


@dataclass(frozen=True)
class Run:
    """Settings and results of a fit.

    Attributes
    ----------
    draws, tune, chains, random_seed, method
        As in an estimator's `fit`.
    sampler : str
        The method that drew the parameters.
    checks : mapping of str to float
        Diagnostics by name, in a pool prefixed with the member's name; empty for a
        plug-in estimator.
    summary : mapping of str to mapping
        For R1, R2, tau1, tau2 and each scalar parameter: ``mean``, ``sd``,
        ``2.5%``, ``50%``, ``97.5%`` and ``mcse``, the Monte Carlo error of the mean.
    """

    draws: int
    tune: int
    chains: int
    random_seed: int
    method: str
    sampler: str
    checks: Mapping[str, float]
    summary: Mapping[str, Mapping[str, float]]

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of `fit`."""
        return {
            name: getattr(self, name)
            for name in ("draws", "tune", "chains", "random_seed", "method")
        }

    @property
    def table(self) -> "pd.DataFrame":
        """The summary as a table."""
        import pandas as pd

        return pd.DataFrame({name: dict(row) for name, row in self.summary.items()}).T[
            list(COLUMNS)
        ]

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        checks = (
            ", ".join(f"{name} {value:.4g}" for name, value in self.checks.items()) or "none needed"
        )
        sampler = "independent draws" if self.sampler == "none" else self.sampler
        return f"{settings}\n             {sampler}; checks: {checks}"


@dataclass(frozen=True)
class Calibration:
    """Simulation-based calibration with the sizes of the fit, or why there is none.

    Attributes
    ----------
    reason : str or None
        Why the estimator was not calibrated.
    settings : mapping
        ``sample_size``, ``population_size``, ``simulations``, ``draws``, ``thin``,
        ``bins``, ``random_seed``, ``method``, ``version`` and ``failures``, and
        ``known_margins`` if there were any; see `calibrate`.
    p_values : mapping of str to mapping
        For each quantity the p-values ``chi_square`` and ``kolmogorov_smirnov`` of
        uniform ranks.
    """

    reason: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    p_values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.reason is not None:
            return self.reason
        values = [value for tests in self.p_values.values() for value in tests.values()]
        of = self.settings
        known = (
            f" and known margins of {', '.join(of['known_margins'])}"
            if "known_margins" in of
            else ""
        )
        return (
            f"{of['simulations']} simulations with n = {of['sample_size']}, N ="
            f" {of['population_size']}{known}, {of['failures']} refused; the smallest of"
            f" {len(values)} p-values is {min(values):.3g}"
        )


@dataclass(frozen=True)
class Card:
    """One estimator on one table, and results with which a new fit can be compared.

    Printing a card gives its text.

    Attributes
    ----------
    estimator : Estimator
        Ready to fit.
    table : CardTable
        The table it was fitted to.
    weights : tuple of float
        Weights of the three terms of R1 and R2.
    fit : Run
        The fit that `validate_card` repeats.
    reference : Run
        A longer fit to compare with, by NUTS if the estimator is Bayesian.
    calibration : Calibration
        Whether the estimator recovers what its own prior generated.
    versions : mapping of str to str
        Versions of the packages that made the fits.
    command : str
        The command that wrote the card.
    path : Path
        The file.
    """

    estimator: Estimator
    table: CardTable
    weights: tuple[float, ...]
    fit: Run
    reference: Run
    calibration: Calibration
    versions: Mapping[str, str]
    command: str
    path: Path = field(compare=False)

    @property
    def spec(self) -> dict[str, Any]:
        """The whole specification of the estimator, as plain values."""
        return self.estimator.spec()

    def load_table(self) -> xr.DataArray:
        """Load the table and compare it with its hash, if the card has one.

        Raises
        ------
        FileFormatError
            The file is missing or unreadable, is a link that leads out of the folder of
            the card, or holds another table.
        """
        of = self.table
        table = load_dataset(of.dataset) if of.dataset is not None else read_table(self._file())
        return self._checked(table, "table.hash", of.hash)

    def load_sample(self) -> xr.DataArray:
        """Load the table, draw the sample again and compare both with their hashes.

        A card without hashes has the size of the sample to compare with.

        Raises
        ------
        FileFormatError
            Whatever `load_table` refuses; a sample from a table of another total than
            the population, or a different one, as another version of NumPy may draw.
        """
        table, of = self.load_table(), self.table
        if of.fraction is not None:
            self._check_total(table, "table.population_size", of.population_size)
            table = draw_sample(table, fraction=of.fraction, random_seed=of.random_seed)
        self._check_total(table, "sample.size", of.sample_size)
        return self._checked(table, "sample.hash", of.sample_hash)

    def fit_arguments(self) -> dict[str, Any]:
        """Arguments of the fit other than the sample: `N`, what was known, settings.

        Raises
        ------
        FileFormatError
            Structural zeros or known margins that are not in the table.
        """
        table = self.load_table()
        arguments: dict[str, Any] = {
            "population_size": self.table.population_size,
            **self.fit.settings,
        }
        try:
            if self.table.structural_zeros:
                arguments["structural_zeros"] = cells_mask(table, self.table.structural_zeros)
            if self.table.known_margins:
                arguments["known_margins"] = _margins(table, self.table)
        except ValueError as error:
            raise FileFormatError(f"{self.path}: table: {error}") from error
        return arguments

    def _file(self) -> Path:
        """The file of the table, in the folder of the card or below."""
        file = self.path.parent / str(self.table.file)
        if not file.resolve().is_relative_to(self.path.parent.resolve()):
            raise FileFormatError(
                f"{self.path}: table.file is {self.table.file!r}, a link that leads out of the"
                " folder of the card; put the file itself there"
            )
        return file

    def _check_total(self, table: xr.DataArray, name: str, expected: int) -> None:
        if int(table.sum()) != expected:
            raise FileFormatError(
                f"{self.path}: {name} is {expected}, {self.table.source} gives another: this is not"
                " what was fitted"
            )

    def _checked(self, table: xr.DataArray, name: str, expected: str | None) -> xr.DataArray:
        if expected is not None and table_hash(table) != expected:
            raise FileFormatError(
                f"{self.path}: {name} is {expected}, but {self.table.source} gives another: this is"
                " not what was fitted"
            )
        return table

    def __str__(self) -> str:
        numbers = self.reference.table.assign(fit=self.fit.table["mean"])
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        lines = [
            f"Model card {self.path.name}",
            "",
            f"Estimator:   {self.estimator!r}",
            f"Table:       {self.table}",
            f"             {self.table.citation}",
            f"Reference:   {self.reference}",
            f"Fit:         {self.fit}",
            f"Calibration: {self.calibration}",
            f"Versions:    {versions}",
            "",
            "Reference, and beside it the mean of the fit:",
            numbers.to_string(float_format=lambda value: f"{value:.4f}"),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Card {self.path}: {self.estimator!r}>"


def table_hash(table: xr.DataArray) -> str:
    """SHA-256 of a table's variables, labels and counts, each in their order.

    The labels ``1`` and ``"1"`` differ. Of a public table only: that of any other can
    be found by trying tables, with 30 people in six cells within seconds.

    Examples
    --------
    >>> import taciturn as tc
    >>> from taciturn.cards import table_hash
    >>> table_hash(tc.load_dataset("area_by_sex"))[:7]
    'sha256:'
    """
    labels = [[dim, labels_of(table[dim])] for dim in table_dims(table)]
    head = json.dumps(labels, default=str).encode()
    counts = np.ascontiguousarray(table.values, dtype="<i8").tobytes()
    return f"sha256:{hashlib.sha256(head + b'\n' + counts).hexdigest()}"


def _margins(table: xr.DataArray, described: CardTable) -> xr.DataArray:
    """The population's table over the known margins, from the table or from the card.

    Raises
    ------
    ParameterError
        A variable that is not in the table.
    TableError
        More or fewer counts than the margins have cells.
    """
    margins = margin(table, described.known_margins)
    if not described.known_counts:
        return margins
    if len(described.known_counts) != margins.size:
        raise TableError(
            f"known_counts must be {margins.size} counts, got {len(described.known_counts)}"
        )
    return margins.copy(data=np.reshape(described.known_counts, margins.shape))


def cells_mask(table: xr.DataArray, cells: tuple[tuple[Any, ...], ...]) -> xr.DataArray:
    """True in the cells of these labels.

    Raises
    ------
    TableError
        A cell that is not in the table.
    """
    mask = np.zeros(table.shape, dtype=bool)
    for cell in cells:
        try:
            mask[
                tuple(
                    table.indexes[dim].get_loc(label)
                    for dim, label in zip(table.dims, cell, strict=True)
                )
            ] = True
        except (KeyError, ValueError) as error:
            raise TableError(
                f"no cell {list(cell)!r} in the table over {table_dims(table)}"
            ) from error
    return table.copy(data=mask)
