"""How good an estimator is: repeated samples from a known population, and calibration
against its own prior.
"""

from taciturn.studies.calibration import calibrate
from taciturn.studies.repeated import study
from taciturn.studies.statistics import study_table

__all__ = ["calibrate", "study", "study_table"]
