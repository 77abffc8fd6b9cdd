from .base import Estimator as Estimator
from .bayesian import BayesianEstimator as BayesianEstimator
from .default import default_estimator as default_estimator
from .latent_class import LatentClass as LatentClass
from .log_linear import (
    DirichletLogLinear as DirichletLogLinear,
    LogLinear as LogLinear,
)
from .mixed_poisson import MixedPoisson as MixedPoisson
from .plug_in import PlugInEstimator as PlugInEstimator
from .pool import LinearPool as LinearPool
from .priors import Prior as Prior
from .problem import Problem as Problem
from .registry import (
    ESTIMATORS as ESTIMATORS,
    estimator_from_spec as estimator_from_spec,
)
from .settings import (
    Parameters as Parameters,
    PriorDraws as PriorDraws,
    SamplerSettings as SamplerSettings,
)
from .urn import (
    ChineseRestaurant as ChineseRestaurant,
    PolyaUrn as PolyaUrn,
)
