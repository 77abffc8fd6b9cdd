"""The expected loss of each protection, and the probability that it keeps a
constraint.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.decisions.constraint import Constraint
from taciturn.decisions.measures import RISK, check_loss, values_of
from taciturn.decisions.monte_carlo import ROUNDING, Means, Share
from taciturn.errors import ParameterError
from taciturn.risk.outcomes import Outcome
from taciturn.risk.table_risk import Weights
from taciturn.validate import quoted, real_number

__all__ = ["Expectation", "Question", "checked_question"]


@dataclass(frozen=True)
class Question:
    """What is asked of each protection, checked.

    Attributes
    ----------
    prices : mapping of str to float
        Of one unit of each measure.
    constraint : Constraint or None
        What must be kept.
    weights : tuple of three floats
        Of R2.
    """

    prices: Mapping[str, float]
    constraint: Constraint | None
    weights: Weights

    def answer(self, outcome: Outcome) -> "Expectation":
        """What is expected of one protection."""
        losses = (p * values_of(outcome, name, self.weights) for name, p in self.prices.items())
        kept = None
        if self.constraint is not None:
            bounded = values_of(outcome, self.constraint.measure, self.weights)
            most = self.constraint.at_most
            holds = bounded <= most + ROUNDING * max(most, 1)
            kept = Share.of(holds, Means.of(bounded, outcome.dependence))
        return Expectation(Means.of(np.asarray(sum(losses)), outcome.dependence), kept, self)


@dataclass(frozen=True, repr=False)
class Expectation:
    """What is expected of one protection.

    Attributes
    ----------
    loss : Means
        The expected loss.
    kept : Share or None
        The probability that the constraint is kept; None without one.
    question : Question
        That was asked.
    """

    loss: Means
    kept: Share | None
    question: Question

    @property
    def feasible(self) -> bool:
        """Whether the constraint is kept with the probability that it asks for."""
        constraint = self.question.constraint
        if constraint is None or self.kept is None:
            return True
        return self.kept.at_least(constraint.probability)

    @property
    def doubtful(self) -> bool:
        """Whether what is asked for is within twice the Monte Carlo error."""
        constraint = self.question.constraint
        if constraint is None or self.kept is None:
            return False
        return self.kept.in_doubt(constraint.probability)


def checked_question(loss: Any, constraint: Any, weights: Weights) -> Question:
    """What is asked of each protection.

    Raises
    ------
    ParameterError
        A loss or prices that cannot be, or nothing that weighs the risk.
    """
    if constraint is not None and not isinstance(constraint, Constraint):
        raise ParameterError(
            f"constraint must be a Constraint, such as tc.Constraint('R2', at_most=0.1), got"
            f" {quoted(constraint)}"
        )
    given = loss if isinstance(loss, Mapping) else {check_loss(loss, "loss", also=(RISK,)): 1.0}
    if not given:
        raise ParameterError("loss must give the price of at least one measure, got none")
    prices = {
        check_loss(name, "loss", also=(RISK,)): real_number(price, f"loss[{name!r}]", above=0)
        for name, price in given.items()
    }
    if RISK not in prices and (constraint is None or constraint.measure != RISK):
        raise ParameterError(
            "nothing weighs the risk, so the table as it is would always be best: give 'R2' a price"
            " in loss, or a constraint, such as tc.Constraint('R2', at_most=0.1)"
        )
    return Question(prices, constraint, weights)
