from .choice import choose_protection as choose_protection
from .comparison import compare_protections as compare_protections
from .constraint import Constraint as Constraint
from .decision import Decision as Decision
from .information import value_of_sample as value_of_sample
from .weights import (
    compare_over_weights as compare_over_weights,
    weight_sensitivity as weight_sensitivity,
)
