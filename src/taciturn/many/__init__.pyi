from .assessing import assess_many as assess_many
from .shared_profile.estimator import SharedProfile as SharedProfile
