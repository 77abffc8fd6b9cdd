from . import (
    attack as attack,
    cards as cards,
    decisions as decisions,
    errors as errors,
    estimators as estimators,
    fits as fits,
    information as information,
    magnitude as magnitude,
    many as many,
    perturbation as perturbation,
    publication as publication,
    release_log as release_log,
    reports as reports,
    risk as risk,
    studies as studies,
    suppression as suppression,
    synthesis as synthesis,
    tables as tables,
)
from .attack import (
    GlobalRecoding as GlobalRecoding,
    LinkedTables as LinkedTables,
    Rounding as Rounding,
    Suppression as Suppression,
    attacker_bounds as attacker_bounds,
    attacker_posterior as attacker_posterior,
)
from .decisions import (
    Constraint as Constraint,
    choose_protection as choose_protection,
    compare_over_weights as compare_over_weights,
    compare_protections as compare_protections,
    weight_sensitivity as weight_sensitivity,
)
from .errors import (
    ConvergenceWarning as ConvergenceWarning,
    TaciturnError as TaciturnError,
)
from .estimators import (
    ChineseRestaurant as ChineseRestaurant,
    DirichletLogLinear as DirichletLogLinear,
    LatentClass as LatentClass,
    LinearPool as LinearPool,
    LogLinear as LogLinear,
    MixedPoisson as MixedPoisson,
    PolyaUrn as PolyaUrn,
    Prior as Prior,
    default_estimator as default_estimator,
)
from .fits import (
    assess as assess,
    compare as compare,
    loo as loo,
    prior_sensitivity as prior_sensitivity,
    read_fit as read_fit,
    save_fit as save_fit,
    summary as summary,
)
from .magnitude import (
    Dominance as Dominance,
    PPercent as PPercent,
    sensitive_cells as sensitive_cells,
    tabulate_magnitude as tabulate_magnitude,
)
from .many import (
    SharedProfile as SharedProfile,
    assess_many as assess_many,
)
from .perturbation import (
    add_noise as add_noise,
    cell_key as cell_key,
    controlled_round as controlled_round,
    random_round as random_round,
    swap_records as swap_records,
)
from .plots import (
    plot_attack as plot_attack,
    plot_checks as plot_checks,
    plot_risk as plot_risk,
    plot_risk_utility as plot_risk_utility,
    plot_weights as plot_weights,
)
from .publication import (
    write_release as write_release,
)
from .release_log import (
    ReleaseLog as ReleaseLog,
)
from .reports import (
    report as report,
)
from .risk import (
    disclosure_risk as disclosure_risk,
    information_loss as information_loss,
    risk_utility as risk_utility,
)
from .studies import (
    calibrate as calibrate,
    study as study,
)
from .suppression import (
    protect_table as protect_table,
    suppress as suppress,
)
from .tables import (
    draw_sample as draw_sample,
    load_dataset as load_dataset,
    margin as margin,
    read_table as read_table,
    tabulate as tabulate,
)

__version__: str
