"""Frequency tables: read, tabulate, check, take margins, draw a sample.

A table is an `xarray.DataArray` of whole numbers, one dimension for each classifying
variable, coordinates = categories, name ``count``. A category that nobody has stays in
the table: it is a zero cell and counts in `K`.
"""

from taciturn.tables.checks import check_table
from taciturn.tables.datasets import DATASETS, load_dataset
from taciturn.tables.hierarchies import nested_codes, read_hrc, with_levels
from taciturn.tables.margins import Margin, margin
from taciturn.tables.reading import read_table
from taciturn.tables.sampling import draw_sample
from taciturn.tables.tabulation import tabulate

__all__ = [
    "DATASETS",
    "Margin",
    "check_table",
    "draw_sample",
    "load_dataset",
    "margin",
    "nested_codes",
    "read_hrc",
    "read_table",
    "tabulate",
    "with_levels",
]
