from .assessment import (
    Summary as Summary,
    assess as assess,
    summary as summary,
)
from .attack import (
    ConstraintRank as ConstraintRank,
    LinkedTables as LinkedTables,
    Redesign as Redesign,
    Rounding as Rounding,
    Suppression as Suppression,
    attacker_bounds as attacker_bounds,
    constraint_rank as constraint_rank,
    rank_decrease as rank_decrease,
)
from .cards import (
    Card as Card,
    CardCheck as CardCheck,
    load_card as load_card,
    validate_card as validate_card,
    write_card as write_card,
)
from .checks import predictive_checks as predictive_checks
from .comparison import (
    compare as compare,
    loo as loo,
    stack as stack,
)
from .datasets import (
    DATASETS as DATASETS,
    load_dataset as load_dataset,
)
from .errors import (
    ComparisonWarning as ComparisonWarning,
    ConvergenceWarning as ConvergenceWarning,
    TaciturnError as TaciturnError,
)
from .estimators import (
    ChineseRestaurant as ChineseRestaurant,
    DirichletLogLinear as DirichletLogLinear,
    Estimator as Estimator,
    LatentClass as LatentClass,
    LinearPool as LinearPool,
    LogLinear as LogLinear,
    PolyaUrn as PolyaUrn,
    Prior as Prior,
)
from .fits import (
    read_fit as read_fit,
    repeat_fit as repeat_fit,
    save_fit as save_fit,
)
from .information import (
    averaged_conditional_entropy as averaged_conditional_entropy,
    conditional_entropy as conditional_entropy,
    conditional_entropy_from_joint as conditional_entropy_from_joint,
    conditional_entropy_from_transition as conditional_entropy_from_transition,
    entropy as entropy,
    f_divergence as f_divergence,
    hellinger_distance as hellinger_distance,
    relative_entropy as relative_entropy,
)
from .perturbation import (
    cell_key as cell_key,
    cell_key_records as cell_key_records,
    controlled_round as controlled_round,
    conventional_round as conventional_round,
    geometric_noise as geometric_noise,
    perturbation_table as perturbation_table,
    random_round as random_round,
    record_keys as record_keys,
    small_cell_adjust as small_cell_adjust,
    small_cells as small_cells,
    suppress_cells as suppress_cells,
    swap_records as swap_records,
    swapped_table as swapped_table,
    swapping_conditional_entropy as swapping_conditional_entropy,
    swapping_joint as swapping_joint,
)
from .plots import (
    plot_risk as plot_risk,
    plot_risk_utility as plot_risk_utility,
)
from .risk import (
    cell_uniques as cell_uniques,
    disclosure_risk as disclosure_risk,
    information_loss as information_loss,
    risk_utility as risk_utility,
    unique_risk as unique_risk,
)
from .schema import check_population as check_population
from .sensitivity import prior_sensitivity as prior_sensitivity
from .studies import (
    calibrate as calibrate,
    study as study,
    study_table as study_table,
)
from .tables import (
    check_table as check_table,
    draw_sample as draw_sample,
    margin as margin,
    read_table as read_table,
    tabulate as tabulate,
)

__all__ = [
    "DATASETS",
    "Card",
    "CardCheck",
    "ChineseRestaurant",
    "ComparisonWarning",
    "ConstraintRank",
    "ConvergenceWarning",
    "DirichletLogLinear",
    "Estimator",
    "LinearPool",
    "LinkedTables",
    "LogLinear",
    "PolyaUrn",
    "Prior",
    "Redesign",
    "Rounding",
    "Summary",
    "Suppression",
    "TaciturnError",
    "assess",
    "attacker_bounds",
    "averaged_conditional_entropy",
    "calibrate",
    "cell_key",
    "cell_key_records",
    "cell_uniques",
    "check_population",
    "check_table",
    "compare",
    "conditional_entropy",
    "conditional_entropy_from_joint",
    "conditional_entropy_from_transition",
    "constraint_rank",
    "controlled_round",
    "conventional_round",
    "disclosure_risk",
    "draw_sample",
    "entropy",
    "f_divergence",
    "geometric_noise",
    "hellinger_distance",
    "information_loss",
    "load_card",
    "load_dataset",
    "loo",
    "margin",
    "perturbation_table",
    "plot_risk",
    "plot_risk_utility",
    "predictive_checks",
    "prior_sensitivity",
    "random_round",
    "rank_decrease",
    "read_fit",
    "read_table",
    "record_keys",
    "relative_entropy",
    "repeat_fit",
    "risk_utility",
    "save_fit",
    "small_cell_adjust",
    "small_cells",
    "stack",
    "study",
    "study_table",
    "summary",
    "suppress_cells",
    "swap_records",
    "swapped_table",
    "swapping_conditional_entropy",
    "swapping_joint",
    "tabulate",
    "unique_risk",
    "validate_card",
    "write_card",
]

__version__: str
