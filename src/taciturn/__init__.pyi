from .assessment import (
    Summary as Summary,
    assess as assess,
    summary as summary,
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
from .perturbation import random_round as random_round
from .plots import plot_risk as plot_risk
from .risk import (
    cell_uniques as cell_uniques,
    disclosure_risk as disclosure_risk,
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
    "ConvergenceWarning",
    "DirichletLogLinear",
    "Estimator",
    "LinearPool",
    "LogLinear",
    "PolyaUrn",
    "Prior",
    "Summary",
    "TaciturnError",
    "assess",
    "averaged_conditional_entropy",
    "calibrate",
    "cell_uniques",
    "check_population",
    "check_table",
    "compare",
    "conditional_entropy",
    "conditional_entropy_from_joint",
    "conditional_entropy_from_transition",
    "disclosure_risk",
    "draw_sample",
    "entropy",
    "f_divergence",
    "hellinger_distance",
    "load_card",
    "load_dataset",
    "loo",
    "margin",
    "plot_risk",
    "predictive_checks",
    "prior_sensitivity",
    "random_round",
    "read_fit",
    "read_table",
    "relative_entropy",
    "repeat_fit",
    "save_fit",
    "stack",
    "study",
    "study_table",
    "summary",
    "tabulate",
    "unique_risk",
    "validate_card",
    "write_card",
]

__version__: str
