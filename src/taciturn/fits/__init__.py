"""What is done with a fit: its risk, summary, checks, comparison, stacking and
files.
"""

from taciturn.fits.checks import predictive_checks
from taciturn.fits.comparison import compare, loo
from taciturn.fits.files import read_fit, save_fit
from taciturn.fits.repeat import repeat_fit
from taciturn.fits.risk import assess
from taciturn.fits.sensitivity import prior_sensitivity
from taciturn.fits.stacking import stack
from taciturn.fits.summary import Summary, summary
from taciturn.schema import check_population

__all__ = [
    "Summary",
    "assess",
    "check_population",
    "compare",
    "loo",
    "predictive_checks",
    "prior_sensitivity",
    "read_fit",
    "repeat_fit",
    "save_fit",
    "stack",
    "summary",
]
