"""Small census tables to learn and to test with.

An extract of the 2001 census of England and Wales for ten output areas, as printed in
Antal, Shlomo & Elliot (2014), Tables 1-4: ``area_by_country_of_birth``,
``area_by_mode_of_travel`` (ages 16-74), ``area_by_religion``, ``area_by_sex``.
"""

from importlib.resources import as_file, files
from typing import Final

import xarray as xr

from taciturn.errors import ParameterError
from taciturn.tables.reading import read_table

__all__ = ["DATASETS", "load_dataset"]

DATASETS: Final = (
    "area_by_country_of_birth",
    "area_by_mode_of_travel",
    "area_by_religion",
    "area_by_sex",
)


def load_dataset(name: str) -> xr.DataArray:
    """Load a packaged population table.

    Parameters
    ----------
    name : str
        One of `taciturn.datasets.DATASETS`.

    Returns
    -------
    DataArray
        int64 counts, two dimensions; categories are the codes of the source, as text.

    Raises
    ------
    ParameterError
        An unknown name; the message lists the known ones.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Measuring disclosure risk and information loss in
    population based frequency tables, Tables 1-4.

    Examples
    --------
    >>> import taciturn as tc
    >>> int(tc.load_dataset("area_by_religion").sum())
    2449
    """
    if name not in DATASETS:
        raise ParameterError(f"no dataset {name!r}: there are {', '.join(DATASETS)}")
    with as_file(files(__package__) / f"{name}.csv") as path:
        return read_table(path)
