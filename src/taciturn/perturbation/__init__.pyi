from .cell_keys import cell_key as cell_key, cell_key_records as cell_key_records
from .controlled_rounding import controlled_round as controlled_round
from .conventional_rounding import conventional_round as conventional_round
from .keys import (
    derive_record_keys as derive_record_keys,
    record_keys as record_keys,
)
from .magnitude_cell_keys import cell_key_magnitudes as cell_key_magnitudes
from .magnitude_noise import (
    FlexShare as FlexShare,
    magnitude_perturbation_table as magnitude_perturbation_table,
)
from .noise import add_noise as add_noise
from .parameter_grid import grid as grid
from .perturbation_tables import perturbation_table as perturbation_table
from .random_rounding import random_round as random_round
from .record_swapping import swap_records as swap_records, swapped_table as swapped_table
from .small_cell_adjustment import adjust_small_cells as adjust_small_cells
from .small_count_rounding import round_small_counts as round_small_counts
from .swapping_method import (
    swapping_method_conditional_entropy as swapping_method_conditional_entropy,
)
from .swapping_transitions import (
    swapping_conditional_entropy as swapping_conditional_entropy,
    swapping_joint as swapping_joint,
)
from .threshold_suppression import (
    small_cells as small_cells,
    suppress_small_cells as suppress_small_cells,
)
