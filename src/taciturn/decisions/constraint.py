"""What a protection must keep, with which probability."""

from dataclasses import KW_ONLY, dataclass

from taciturn.decisions.measures import RISK, check_loss, named
from taciturn.validate import real_number

__all__ = ["Constraint"]


@dataclass(frozen=True)
class Constraint:
    r"""A bound on a measure that a protection keeps with at least some probability.

    .. math:: P(\text{measure} \le t) \ge p

    over the draws of the population and what the method may release, but for rounding:
    a value or a share that misses by at most 1e-12, or this part of a bound above 1,
    keeps it.

    Attributes
    ----------
    measure : str
        ``"R2"`` or a loss, as in `compare_protections`: of a rank correlation what it
        is less than 1, of a change its size.
    at_most : float
        The bound `t`, at least 0.
    probability : float
        The least probability `p`, above 0 and at most 1. With 1, no draw and no
        replicate may be above the bound: how probable those are that were not drawn, a
        finite number of draws does not say.

    Raises
    ------
    ParameterError
        Another measure, or numbers out of range.

    Notes
    -----
    *How far it can be trusted.* The probability is that of the draws, and no better
    than their upper tail. In repeated samples of two census tables R2, of the sample as
    it is and with small counts suppressed, was at most the 95 % upper end of the
    default estimator in 89 to 100 % of them, and at most the 99 % one in 97 to 100 %.
    What is chosen by a tight bound keeps it less often than that, as it is chosen
    in those samples of which the fit says too little (`docs/explanation/choices.md`).
    Where a bound must hold, ask for 0.99 of a lower one.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.Constraint("R2", at_most=0.1)
    Constraint(measure='R2', at_most=0.1, probability=0.95)
    >>> print(tc.Constraint("R2", at_most=0.1))
    P(R2 <= 0.1) >= 0.95
    """

    measure: str
    _: KW_ONLY
    at_most: float
    probability: float = 0.95

    def __post_init__(self) -> None:
        """Check the values."""
        check_loss(self.measure, "measure", also=(RISK,))
        real_number(self.at_most, "at_most", least=0)
        real_number(self.probability, "probability", above=0, most=1)

    def __str__(self) -> str:
        at_most, probability = (
            repr(float(x)).removesuffix(".0") for x in (self.at_most, self.probability)
        )
        return f"P({named(self.measure)} <= {at_most}) >= {probability}"
