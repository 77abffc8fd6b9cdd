"""Bayesian modelling of statistical disclosure risk in tables.

Everything users need is imported from here, on first use: ``import taciturn`` itself loads nothing heavy.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from taciturn.datasets import load_dataset as load_dataset
    from taciturn.errors import TaciturnError as TaciturnError

_EXPORTS: Final = {
    "taciturn.assessment": ["Summary", "assess", "read_fit", "repeat_fit", "save_fit", "summary"],
    "taciturn.datasets": ["DATASETS", "load_dataset"],
    "taciturn.errors": ["ConvergenceWarning", "TaciturnError"],
    "taciturn.estimators": ["ChineseRestaurant", "DirichletLogLinear", "Estimator", "LogLinear", "PolyaUrn", "Prior"],
    "taciturn.information": [
        "averaged_conditional_entropy",
        "conditional_entropy",
        "conditional_entropy_from_joint",
        "conditional_entropy_from_transition",
        "entropy",
        "f_divergence",
        "hellinger_distance",
        "relative_entropy",
    ],
    "taciturn.plots": ["plot_risk"],
    "taciturn.perturbation": ["random_round"],
    "taciturn.risk": ["disclosure_risk", "unique_risk"],
    "taciturn.schema": ["check_population"],
    "taciturn.tables": ["check_table", "draw_sample", "margin", "read_table", "tabulate"],
}
_HOME: Final = {name: module for module, names in _EXPORTS.items() for name in names}

__version__ = version("taciturn")
__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'taciturn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
