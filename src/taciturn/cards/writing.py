"""A model card from a fit and its reference."""

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from taciturn.cards.card import Calibration, Card, CardTable, Run, table_hash
from taciturn.cards.check import check_numbers, compare_numbers, fit_in_numbers, rounded
from taciturn.cards.reading import card_content, load_card
from taciturn.cards.toml import toml_text
from taciturn.errors import EstimationError, FileFormatError, ParameterError
from taciturn.estimators import Estimator, estimator_from_spec
from taciturn.files import check_output, whole_file
from taciturn.fits.parts import FitParts, fit_parts
from taciturn.fits.recorded import recorded_mapping, recorded_settings
from taciturn.fits.risk import assess
from taciturn.tables.datasets import DATASETS, load_dataset
from taciturn.tables.labels import labels_of
from taciturn.tables.margins import margin
from taciturn.tables.reading import read_table
from taciturn.tables.sampling import draw_sample

__all__ = ["write_card"]


def write_card(
    path: str | PathLike[str],
    fit: xr.DataTree,
    *,
    reference: xr.DataTree,
    table: str | PathLike[str],
    citation: str,
    fraction: float | None = None,
    random_seed: int | None = None,
    calibration: xr.Dataset | str,
    command: str,
    public: bool = False,
    overwrite: bool = False,
) -> Card:
    """Write the card of a fit; the file appears complete or not at all.

    Parameters
    ----------
    path : path
        The file to write, in a folder that exists.
    fit : DataTree
        A fit by an estimator of this package.
    reference : DataTree
        Another fit of the same estimator to the same sample, with more draws and
        another seed: by NUTS if the estimator is Bayesian.
    table : str or path
        Name of a packaged table, or a file in the folder of the card or below, with
        counts in the column ``count``.
    citation : str
        Source of the table.
    fraction, random_seed : float and int, optional
        Arguments with which `draw_sample` drew the sample from the table; without them
        the table is the sample.
    calibration : Dataset or str
        Result of `calibrate` for the estimator, or the reason why there is none.
    command : str
        The command that writes the card, so that it can be written again.
    public : bool
        Whether the table is public, as the packaged ones are: only then does the card
        hold hashes, by which `validate_card` recognises table and sample. The hash of a
        table that is not public could be found by trying tables.
    overwrite : bool
        Replace a file that exists.

    Returns
    -------
    Card
        The card as it reads from the file.

    Raises
    ------
    ParameterError
        `fit` and `reference` are not of the same estimator, sample and population; the
        table does not give the sample or its known margins, or holds another number of
        people than the population; both have the same seed; the calibration is of
        another estimator, or with other sizes or known margins than the fit; the file
        lies outside the folder of the card.
    EstimationError
        A fit did not converge, or the two means of a quantity, or ends of its
        intervals, differ by more than Monte Carlo errors explain.
    FileFormatError
        Something is there already, and it is the table, no regular file, or `overwrite`
        is False; the file cannot be written, or part of it would not be read back as it
        was.

    Notes
    -----
    The numbers of a card are computed from the table, to six digits, and may give a
    small one away without any hash. The card of a table that is not public is to be
    kept like the table.

    Examples
    --------
    >>> import taciturn as tc
    >>> from tempfile import TemporaryDirectory
    >>> census = tc.load_dataset("area_by_sex")
    >>> drawn = {"fraction": 0.1, "random_seed": 1}
    >>> sample = tc.draw_sample(census, **drawn)
    >>> settings = {"population_size": 2449, "progressbar": False}
    >>> fit = tc.LogLinear().fit(sample, draws=500, random_seed=1, **settings)
    >>> longer = tc.LogLinear().fit(sample, draws=2000, random_seed=2, **settings)
    >>> with TemporaryDirectory() as folder:
    ...     card = tc.cards.write_card(
    ...         f"{folder}/card.toml",
    ...         fit,
    ...         reference=longer,
    ...         table="area_by_sex",
    ...         citation="Census of 2001",
    ...         calibration="A plug-in estimator has no prior.",
    ...         command="by hand",
    ...         **drawn,
    ...     )
    >>> card.estimator
    LogLinear()
    """
    path = Path(path)
    tables = () if table in DATASETS else (Path(table),)
    check_output(path, inputs=tables, overwrite=overwrite)
    parts = fit_parts(fit)
    estimator = _one_estimator(fit, parts, reference)
    if "risk" not in fit.children:
        fit = assess(fit)
    weights = tuple(float(weight) for weight in fit["risk"].attrs["weights"])
    runs = {
        "fit": _run(fit, "fit"),
        "reference": _run(assess(reference, weights=weights), "reference"),
    }
    _, apart = compare_numbers(runs["reference"].summary, runs["fit"].summary)
    if apart:
        raise EstimationError(f"the fit does not agree with its reference: {'; '.join(apart)}")
    card = Card(
        estimator=estimator,
        table=_described(path, parts, table, citation, fraction, random_seed, public=public),
        weights=weights,
        **runs,
        calibration=_calibration(calibration, estimator, parts),
        versions=recorded_mapping(fit, "versions"),
        command=command,
        path=path,
    )
    with whole_file(path, overwrite=overwrite) as file:
        file.write(toml_text(card_content(card)).encode())
        file.flush()
        if load_card(file.name) != card:
            raise FileFormatError(f"{path}: part of the card would not be read back as it was")
    return card


def _one_estimator(fit: xr.DataTree, parts: FitParts, reference: xr.DataTree) -> Estimator:
    """The estimator of both fits, which must be of the same sample and population."""
    for name, tree in (("fit", fit), ("reference", reference)):
        if not {"estimator", "settings", "sampler", "versions"} <= set(tree.attrs):
            raise ParameterError(
                f"the {name} does not record its estimator and settings, so that no card can"
                " describe it"
            )
    estimators = [estimator_from_spec(tree.attrs["estimator"]) for tree in (fit, reference)]
    given = ("sample", "population_size", "structural_zeros", "known_margins")
    other = fit_parts(reference)
    for known in (parts, other):
        if known.stratified or known.effective_size is not None:
            raise ParameterError(
                "a card describes a simple random sample, the fit is of a"
                f" {'stratified' if known.stratified else 'weighted'} one"
            )
    alike = all(_alike(getattr(parts, name), getattr(other, name)) for name in given)
    if estimators[0] != estimators[1] or not alike:
        raise ParameterError(
            "fit and reference must be of the same estimator, sample, population size and"
            " constraints"
        )
    seeds = [recorded_settings(tree).seed for tree in (fit, reference)]
    if seeds[0] == seeds[1]:
        raise ParameterError(
            f"the reference must have another seed than the fit, both have {seeds[0]}"
        )
    return estimators[0]


def _alike(a: Any, b: Any) -> bool:
    return (
        a.equals(b)
        if isinstance(a, xr.DataArray) and isinstance(b, xr.DataArray)
        else bool(a is b or a == b)
    )


def _run(fit: xr.DataTree, name: str) -> Run:
    rows, diagnostics = fit_in_numbers(fit)
    if diagnostics is not None and not diagnostics.converged:
        raise EstimationError(f"the {name} did not converge: {'; '.join(diagnostics.problems)}")
    settings = recorded_settings(fit).recorded
    sampler = str(fit.attrs["sampler"])
    return Run(**settings, sampler=sampler, checks=check_numbers(diagnostics), summary=rows)


def _described(
    path: Path,
    parts: FitParts,
    table: str | PathLike[str],
    citation: str,
    fraction: float | None,
    random_seed: int | None,
    *,
    public: bool,
) -> CardTable:
    sample, margins = parts.sample, parts.known_margins
    packaged = table in DATASETS
    source = load_dataset(str(table)) if packaged else read_table(table)
    if (fraction is None) != (random_seed is None):
        raise ParameterError("give both fraction and random_seed of the sample, or neither")
    drawn = source
    if fraction is not None:
        _check_size(table, int(source.sum()), parts.population_size)
        drawn = draw_sample(source, fraction=fraction, random_seed=random_seed)
    hashed = packaged or public
    if table_hash(drawn) != table_hash(sample):
        raise ParameterError(
            f"the sample of the fit is not that of {table} with {fraction=}, {random_seed=}"
        )
    known = () if margins is None else tuple(map(str, margins.dims))
    counts: tuple[int, ...] = ()
    if margins is not None and fraction is None:
        counts = tuple(int(count) for count in margins.values.ravel())
    elif margins is not None and not np.array_equal(margin(source, known), margins):
        raise ParameterError(
            f"the known margins of the fit are not those of {table}, from which the sample is drawn"
        )
    cells = np.argwhere(~parts.fillable)
    labels = [labels_of(sample[dim]) for dim in sample.dims]
    return CardTable(
        dataset=str(table) if packaged else None,
        file=None if packaged else _beside(Path(table), path),
        citation=citation,
        hash=table_hash(source) if hashed else None,
        fraction=fraction,
        random_seed=random_seed,
        sample_size=int(sample.sum()),
        sample_hash=table_hash(drawn) if hashed else None,
        population_size=parts.population_size,
        structural_zeros=tuple(
            tuple(of[i] for of, i in zip(labels, cell, strict=True)) for cell in cells
        ),
        known_margins=known,
        known_counts=counts,
    )


def _beside(file: Path, card: Path) -> str:
    try:
        return file.resolve().relative_to(card.parent.resolve()).as_posix()
    except ValueError as error:
        raise ParameterError(
            f"{file}: must lie in the folder of the card, {card.parent}, or below"
        ) from error


def _check_size(table: str | PathLike[str], size: int, population_size: int) -> None:
    """Raise where the table that the sample is drawn from is not the population."""
    if size != population_size:
        raise ParameterError(
            f"the sample is drawn from {table} of {size:,} people, and the fit is with"
            f" {population_size=}"
        )


def _calibration(
    calibration: xr.Dataset | str, estimator: Estimator, parts: FitParts
) -> Calibration:
    if isinstance(calibration, str):
        return Calibration(calibration)
    settings = json.loads(calibration.attrs["settings"])
    if estimator_from_spec(settings.pop("estimator")) != estimator:
        raise ParameterError(f"the calibration is of another estimator than {estimator!r}")
    sizes = {"sample_size": int(parts.sample.sum()), "population_size": parts.population_size}
    for name, size in sizes.items():
        if settings[name] != size:
            raise ParameterError(
                f"the calibration is with {name}={settings[name]}, the fit is with {size}"
            )
    # The card has both of its table.
    shape = settings.pop("categories"), len(settings.pop("structural_zeros"))
    sample = parts.sample
    own = {str(dim): sample.sizes[dim] for dim in sample.dims}, sample.size - parts.cells
    if shape != own:
        raise ParameterError(
            f"the calibration is of a table of {shape[0]} with {shape[1]} structural zeros, the fit"
            f" of one of {own[0]} with {own[1]}"
        )
    margins = parts.known_margins
    told, known = (
        settings.get("known_margins", []),
        [] if margins is None else list(map(str, margins.dims)),
    )
    if sorted(told) != sorted(known):
        raise ParameterError(
            f"the calibration is with known margins of {told}, the fit with those of {known}"
        )
    tests = {"chi_square": "p_value", "kolmogorov_smirnov": "p_value_ks"}
    values = {
        str(quantity): {
            test: rounded(float(calibration[name].sel(quantity=quantity)))
            for test, name in tests.items()
        }
        for quantity in calibration["quantity"].values
    }
    return Calibration(None, {**settings, "failures": int(calibration["failures"])}, values)
