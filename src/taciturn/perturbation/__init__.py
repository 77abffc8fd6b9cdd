"""Protection methods, one file each; all return replicates of the protected table."""

from taciturn.perturbation.cell_key import cell_key, cell_key_records, record_keys
from taciturn.perturbation.controlled_rounding import controlled_round
from taciturn.perturbation.conventional_rounding import conventional_round
from taciturn.perturbation.noise import add_noise
from taciturn.perturbation.perturbation_tables import perturbation_table
from taciturn.perturbation.random_rounding import random_round
from taciturn.perturbation.record_swapping import swap_records, swapped_table
from taciturn.perturbation.small_cell_adjustment import adjust_small_cells
from taciturn.perturbation.swapping_joint import swapping_conditional_entropy, swapping_joint
from taciturn.perturbation.threshold_suppression import small_cells, suppress_small_cells

__all__ = [
    "add_noise",
    "adjust_small_cells",
    "cell_key",
    "cell_key_records",
    "controlled_round",
    "conventional_round",
    "perturbation_table",
    "random_round",
    "record_keys",
    "small_cells",
    "suppress_small_cells",
    "swap_records",
    "swapped_table",
    "swapping_conditional_entropy",
    "swapping_joint",
]
