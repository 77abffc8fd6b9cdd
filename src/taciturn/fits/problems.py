"""Why the numbers of a fit are not to be relied on, in words."""

from collections.abc import Iterable
from typing import Final

import xarray as xr

from taciturn.diagnostics import SMALLEST_ESS, AnyDiagnostics, PooledDiagnostics
from taciturn.fits.checks import missed

__all__ = [
    "NOT_ALIKE",
    "NOT_CONVERGED",
    "TOO_FEW",
    "are_too_few",
    "not_to_be_relied_on",
    "of_few_draws",
    "problems_of",
]

NOT_CONVERGED: Final = "the sampler did not converge"
NOT_ALIKE: Final = "the fitted model does not give samples like this one"
NOT_SHARED: Final = "members of the mixture did not make their shares of the draws"
TOO_FEW: Final = "there are too few draws for an interval"


def problems_of(
    diagnostics: AnyDiagnostics | None, checks: xr.Dataset | None, draws: int
) -> tuple[str, ...]:
    """What diagnostics and checks found, or that there are too few draws, with what may
    help.
    """
    problems, found = [], () if diagnostics is None else diagnostics.problems
    turns = diagnostics.turns if isinstance(diagnostics, PooledDiagnostics) else ()
    if others := [problem for problem in found if problem not in turns]:
        said = "; ".join(others)
        problems.append(f"{NOT_CONVERGED} ({said}): fit again with more tune and draws")
    if turns:
        said = "; ".join(turns)
        problems.append(f"{NOT_SHARED} ({said}): fit again with fewer chains of more draws")
    problems += of_few_draws(draws)
    if checks is not None and (misses := missed(checks)):
        problems.append(
            f"{NOT_ALIKE} ({'; '.join(misses)}): try another estimator, another formula or coarser"
            " categories"
        )
    return tuple(problems)


def of_few_draws(draws: int) -> list[str]:
    """That there are too few draws, where there are."""
    if not are_too_few(draws):
        return []
    return [f"{TOO_FEW} ({draws}, at least {SMALLEST_ESS:.0f} are needed): fit again with more"]


def are_too_few(draws: int) -> bool:
    """Whether the ends of an interval of so many draws are not to be relied on, however
    well the draws were made.
    """
    return draws < SMALLEST_ESS


def not_to_be_relied_on(problems: Iterable[str]) -> str:
    """What is said first where there are problems."""
    return f"Do not rely on these numbers: {'; and '.join(problems)}."
