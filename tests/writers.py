"""Every public function that writes a file, with something to write."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pandas as pd
import xarray as xr

import taciturn as tc
from taciturn.files import RELEASE_ENDINGS

__all__ = ["FILES_WRITTEN", "WRITERS", "report", "save_fit", "write_card"]

DRAWN: Final = {"fraction": 0.1, "random_seed": 1}


@cache
def fits() -> tuple[xr.DataTree, xr.DataTree]:
    """A fit and its reference."""
    sample = tc.draw_sample(tc.load_dataset("area_by_sex"), **DRAWN)
    first, second = (
        tc.LogLinear().fit(sample, population_size=2449, draws=draws, chains=2, random_seed=draws)
        for draws in (100, 1000)
    )
    return first, second


@cache
def protected() -> tc.suppression.ProtectedTable:
    """A protected table without a sensitive cell."""
    firms = pd.DataFrame({"area": list("AAABBB"), "sales": [5, 4, 3, 6, 5, 4]})
    rule = tc.Dominance(1, 0.75)
    return tc.protect_table(firms, "area", "sales", rule, progressbar=False)


def save_fit(path: Path, **options: Any) -> None:
    tc.save_fit(fits()[0], path, **options)


def report(path: Path, **options: Any) -> None:
    tc.report(fits()[0], path, progressbar=False, **options)


def write_release(path: Path, **options: Any) -> None:
    tc.write_release(protected(), path, **options)


def write_card(path: Path, *, table: str | Path = "area_by_sex", **options: Any) -> None:
    fit, reference = fits()
    tc.cards.write_card(
        path,
        fit,
        reference=reference,
        table=table,
        citation="Census of 2001",
        calibration="A plug-in estimator has no prior.",
        command="by hand",
        **DRAWN,
        **options,
    )


def write_certificate(path: Path, **options: Any) -> None:
    table = xr.DataArray([[3, 1, 9], [2, 4, 9]], dims=("a", "b"))
    release = tc.Suppression(table, table < 5)
    tc.attack.write_certificate(release, path, progressbar=False, **options)


WRITERS: Final[dict[str, tuple[Callable[..., None], tuple[str, ...]]]] = {
    "save_fit": (save_fit, (".nc",)),
    "report": (report, (".html",)),
    "write_release": (write_release, RELEASE_ENDINGS),
    "write_card": (write_card, (".toml",)),
    "write_certificate": (write_certificate, (".json",)),
}
"""Under its name each function, and the endings of its files."""
FILES_WRITTEN: Final = [
    (name, ending) for name, (_, endings) in WRITERS.items() for ending in endings
]
