from .calibration import calibrate as calibrate
from .repeated import study as study
from .statistics import study_table as study_table
