"""What was decided, and how sure that is, in numbers and in words."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from taciturn.decisions.constraint import Constraint
from taciturn.figures import beside

__all__ = ["Decision"]


@dataclass(frozen=True, repr=False, eq=False)
class Decision:
    """The protection that was chosen, and what the others would cost; printing it says
    so in words.

    Losses are in the unit of the prices. What it says is computed from the true table,
    and not for release.

    Attributes
    ----------
    chosen : str or None
        The candidate with the least expected loss of those that keep the constraint;
        None if none keeps it.
    runner_up : str or None
        The next of those; None without another.
    regret, regret_mcse : float or None
        What the runner-up would cost more in expectation, at least 0, and the Monte
        Carlo error of that; None without a runner-up.
    perfect_information, perfect_information_mcse : float or None
        What it would be worth to know the population before choosing, at least 0, and
        the Monte Carlo error of that; None if nothing was chosen.
    candidates : Dataset
        For each ``protection`` its ``expected_loss`` and ``mcse``, the Monte Carlo
        error of that; ``kept``, the probability that it keeps the constraint, 1 without
        one, and ``kept_mcse``, a quarter of the width of Wilson's interval, which is
        above 0 for probabilities of 0 and 1, too; ``feasible``, whether ``kept`` is as
        much as asked for; ``best``, the share of the draws of the population in which
        it has the least expected loss of the feasible ones, alone or with others.
    doubtful : tuple of str
        Candidates whose interval holds what is asked for, if it would make a
        difference: the one that was chosen, and those that would be in its place.
    prices : mapping of str to float
        Of one unit of each measure.
    constraint : Constraint or None
        What was to be kept.
    """

    chosen: str | None
    runner_up: str | None
    regret: float | None
    regret_mcse: float | None
    perfect_information: float | None
    perfect_information_mcse: float | None
    candidates: xr.Dataset
    doubtful: tuple[str, ...]
    prices: Mapping[str, float]
    constraint: Constraint | None

    @property
    def close(self) -> bool:
        """Whether what the runner-up costs more is within twice its Monte Carlo error,
        so that other draws and replicates might choose it. Without such an error, as
        where nothing is drawn or both are the same, it is not.
        """
        if self.regret is None or self.regret_mcse is None:
            return False
        return self.regret <= 2 * self.regret_mcse and self.regret_mcse > 0

    def __repr__(self) -> str:
        return "\n".join([*self._choice(), *self._doubts()])

    def _choice(self) -> list[str]:
        """What is chosen, what the next would cost, what it is worth to know more."""
        number = self.candidates.sizes["protection"]
        if self.chosen is None:
            assert self.constraint is not None
            none = f"Nothing is chosen: none of {number} candidates keeps {self.constraint}."
            order = np.lexsort([-self.candidates[name].values for name in ("kept_mcse", "kept")])
            nearest = self.candidates.isel(protection=order[0])  # of ties the least certain
            asked = self.constraint.probability
            kept = _probability(float(nearest["kept"]), float(nearest["kept_mcse"]), asked)
            name = nearest["protection"].item()
            return [none, f"The bound holds with probability {kept} at most, of {name!r}."]
        own = self.candidates.sel(protection=self.chosen)
        among = f"the least of {number} candidates"
        if self.constraint is not None:
            feasible = int(self.candidates["feasible"].sum())
            among = f"the least of {feasible} candidates, of {number}, that keep {self.constraint}"
        loss = _number(own["expected_loss"], own["mcse"])
        lines = [f"Take {self.chosen!r}: its expected loss is {loss}, {among}."]
        if self.runner_up is not None:
            more = _number(self.regret, self.regret_mcse)
            lines.append(f"The runner-up, {self.runner_up!r}, would cost {more} more.")
        worth = _number(self.perfect_information, self.perfect_information_mcse)
        share = f"{_percent(float(own['best']))} % of the draws of the population"
        return [
            *lines,
            f"{self.chosen!r} is the best in {share};"
            f" to know the population would be worth {worth}.",
        ]

    def _doubts(self) -> list[str]:
        """What more draws or replicates might change."""
        lines = []
        if self.close:
            lines.append(
                "A close call: the margin is within twice its Monte Carlo error, so that other"
                " draws or replicates might choose the runner-up."
            )
        lines += [
            f"Whether {name!r} keeps the constraint is within twice its Monte Carlo error."
            for name in self.doubtful
        ]
        return lines


def _percent(share: float) -> str:
    """A share in per cent, which is 0 for none and 100 for all of them alone."""
    return _without_zeros(beside(100 * share, 0, 100, decimals=2))


def _probability(share: float, error: float, asked: float) -> str:
    """A probability with its Monte Carlo error, on its side of what is asked for; 0 or
    1 only where it is.
    """
    return _with_error(_without_zeros(beside(share, 0, asked, 1, decimals=4)), error)


def _number(value: object, error: object) -> str:
    """A number with its Monte Carlo error."""
    return _with_error(f"{float(value):.4g}", float(error))  # type: ignore[arg-type]


def _with_error(text: str, error: float) -> str:
    return f"{text} (Monte Carlo error {error:.2g})"


def _without_zeros(text: str) -> str:
    """A number without zeros at the end of its decimals."""
    return repr(float(text)).removesuffix(".0")
