"""What a value of R2 compares with: the same measure for well-known tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from taciturn.perturbation import random_round
from taciturn.risk import disclosure_risk
from taciturn.risk.table_risk import Weights
from taciturn.tables import draw_sample, load_dataset

__all__ = ["Mark", "between", "yardstick"]

_WHOLE: Final = {
    "area_by_country_of_birth": "area × country of birth",
    "area_by_religion": "area × religion",
    "area_by_mode_of_travel": "area × mode of travel",
    "area_by_sex": "area × sex",
}
_SAMPLED: Final = ("area_by_religion", "area_by_mode_of_travel")
_FRACTIONS: Final = (0.1, 0.01)
_BASES: Final = (3, 10)
_REPLICATES: Final = {"replicates": 200, "random_seed": 1}


@dataclass(frozen=True)
class Mark:
    """A value to compare with.

    Attributes
    ----------
    name : str
        What has it.
    risk : float
        Its R2, of samples and rounded tables the mean.
    """

    name: str
    risk: float


@lru_cache(maxsize=8)
def yardstick(weights: Weights) -> tuple[Mark, ...]:
    """R2 of packaged census tables of ten small areas: whole, sampled and rounded."""
    marks = []
    for dataset, name in _WHOLE.items():
        population = load_dataset(dataset)
        released = {"everybody": population}
        if dataset in _SAMPLED:
            for fraction in _FRACTIONS:
                sample = draw_sample(population, fraction=fraction, **_REPLICATES)
                released[f"{100 * fraction:g} % sample"] = sample
        if dataset == "area_by_religion":
            for base in _BASES:
                rounded = random_round(population, rounding_base=base, **_REPLICATES)
                released[f"everybody, rounded to {base}"] = rounded
        for what, table in released.items():
            risk = disclosure_risk(population, table, weights=weights)["R2"]
            marks.append(Mark(f"{name}, {what}", float(risk.mean())))
    return tuple(marks)


def between(risk: float, marks: Sequence[Mark]) -> str:
    """In words, which marks are next to a value, to two decimals as they are shown."""
    shown = round(risk, 2)
    same = [mark for mark in marks if round(mark.risk, 2) == shown]
    below = max((mark for mark in marks if round(mark.risk, 2) < shown), key=_risk, default=None)
    above = min((mark for mark in marks if round(mark.risk, 2) > shown), key=_risk, default=None)
    said = [f"about that of {mark.name}" for mark in same[:1]]
    said += [
        f"{word} that of {mark.name} ({mark.risk:.2f})"
        for word, mark in (("above", below), ("below", above))
        if mark is not None
    ]
    return f"R2 of this table is {shown:.2f}: {', '.join(said)}."


def _risk(mark: Mark) -> float:
    return mark.risk
