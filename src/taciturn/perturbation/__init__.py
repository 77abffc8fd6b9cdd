"""Protection methods, one file each; all return replicates of the protected table."""

from taciturn.perturbation.cell_key import cell_key, cell_key_records, record_keys
from taciturn.perturbation.controlled_rounding import controlled_round
from taciturn.perturbation.conventional_rounding import conventional_round
from taciturn.perturbation.geometric_noise import geometric_noise
from taciturn.perturbation.perturbation_tables import perturbation_table
from taciturn.perturbation.random_rounding import random_round
from taciturn.perturbation.record_swapping import (
    swap_records,
    swapped_table,
    swapping_conditional_entropy,
    swapping_joint,
)
from taciturn.perturbation.small_cell_adjustment import small_cell_adjust
from taciturn.perturbation.suppression import small_cells, suppress_cells

__all__ = [
    "cell_key",
    "cell_key_records",
    "controlled_round",
    "conventional_round",
    "geometric_noise",
    "perturbation_table",
    "random_round",
    "record_keys",
    "small_cell_adjust",
    "small_cells",
    "suppress_cells",
    "swap_records",
    "swapped_table",
    "swapping_conditional_entropy",
    "swapping_joint",
]
