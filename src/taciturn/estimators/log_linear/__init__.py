"""Log-linear models: plugged in, and with Dirichlet-multinomial departures."""

from taciturn.estimators.log_linear.dirichlet import DirichletLogLinear
from taciturn.estimators.log_linear.plug_in import LogLinear

__all__ = ["DirichletLogLinear", "LogLinear"]
