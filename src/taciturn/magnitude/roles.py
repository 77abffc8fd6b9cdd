"""Which column of the records plays which part in a magnitude table."""

from dataclasses import dataclass
from typing import Final

from taciturn.errors import ParameterError
from taciturn.schema import RESERVED_NAMES
from taciturn.validate import quoted

__all__ = ["RESERVED", "Roles"]

RESERVED: Final = RESERVED_NAMES | {
    *("rank", "total", "absolute_total", "contributors", "largest", "share", "entropy"),
    *("requests", "requested", "waivers", "unwaived"),
    *("sensitive", "rule", "by_rule", "reason", "unsafe_share"),
    *("risk", "entropy_term", "mean_share"),
}
"""Names of what is found, which no variable can have."""


@dataclass(frozen=True)
class Roles:
    """The names of the columns."""

    variables: tuple[str, ...]
    value: str
    contributor: str | None = None
    holding: str | None = None
    sampling_weights: str | None = None
    request: str | None = None
    waiver: str | None = None

    @property
    def columns(self) -> dict[str, str]:
        """Name of the column in the data by the name we give it, classifiers first."""
        named = {f"d{i}": dim for i, dim in enumerate(self.variables)}
        others = {
            "x": self.value,
            "c": self.contributor,
            "h": self.holding,
            "w": self.sampling_weights,
            "r": self.request,
            "v": self.waiver,
        }
        return named | {short: name for short, name in others.items() if name is not None}

    def check(self) -> None:
        """Raise `ParameterError` unless each column has one role, or two that agree."""
        columns = self.columns
        for name in columns.values():
            if not isinstance(name, str):
                raise ParameterError(f"a column must be named by text, got {quoted(name)}")
        for name in dict.fromkeys(columns.values()):
            shorts = {short for short, of in columns.items() if of == name}
            # A classifier may also name the contributor or the holding, as in tables by
            # enterprise.
            if len(shorts) > 1 and (shorts & {"x", "w", "r", "v"} or shorts >= {"c", "h"}):
                raise ParameterError(f"the column {name!r} is given in two roles")
        if self.sampling_weights is not None and self.holding is not None:
            raise ParameterError(
                "sampling_weights cannot be given with holding: the holdings of those for whom a"
                " weighted contributor stands are not known"
            )
        if self.sampling_weights is not None and self.waiver is not None:
            raise ParameterError(
                "sampling_weights cannot be given with waiver: those for whom a weighted"
                " contributor stands have waived nothing"
            )
