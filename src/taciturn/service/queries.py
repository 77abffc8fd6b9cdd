"""What is asked of the service: bodies of requests, held to their bounds."""

from math import isfinite, prod
from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from taciturn.service.bounds import MOST_CATEGORIES, MOST_CELLS, MOST_DIMS, MOST_TEXT

__all__ = ["Query", "ReleaseQuery", "Table"]

_PLAIN: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"  # it is printed on terminals


def _as_text(given: Any) -> Any:
    """A category that is a whole number is its text, as everywhere in a log."""
    return str(given) if type(given) is int else given


type Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_TEXT)]
type Plain = Annotated[str, StringConstraints(max_length=MOST_TEXT, pattern=_PLAIN)]
type Category = Annotated[Text, BeforeValidator(_as_text, json_schema_input_type=str | int)]
type Categories = Annotated[list[Category], Field(min_length=1, max_length=MOST_CATEGORIES)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Table(_Strict):
    """Counts by variables of the log or levels above them.

    Attributes
    ----------
    dims : list of str
        The variables.
    categories : dict of str to list
        The categories of each; one that is the `total` of the query is the sum over
        the variable.
    counts : list
        The count of each cell, null where it is not published: lists in lists, or one
        list in which the last variable changes fastest.
    """

    dims: list[Text] = Field(max_length=MOST_DIMS)
    categories: dict[Text, Categories] = Field(default_factory=dict, max_length=MOST_DIMS)
    counts: Any = Field(
        json_schema_extra={
            "type": "array",
            "items": {"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "array"}]},
        }
    )

    @model_validator(mode="after")
    def _flat(self) -> "Table":
        """Hold the parts against each other; counts are in one list afterwards."""
        if len(set(self.dims)) < len(self.dims) or set(self.dims) != set(self.categories):
            raise ValueError(
                f"categories must be given for each of dims once: dims are {self.dims}, categories"
                f" are of {list(self.categories)}"
            )
        shape = [len(self.categories[name]) for name in self.dims]
        if prod(shape) > MOST_CELLS:
            raise ValueError(f"a table may have {MOST_CELLS:,} cells, got {prod(shape):,}")
        nested = isinstance(self.counts, list) and any(isinstance(x, list) for x in self.counts)
        counts = _counts(self.counts, shape if nested else [prod(shape)], "counts")
        self.__dict__["counts"] = counts
        return self


def _counts(given: Any, shape: list[int], place: str) -> list[int | float | None]:
    """The counts of a table of this shape, one after the other."""
    if not shape:
        number = type(given) is int or (type(given) is float and isfinite(given))
        if given is None or number:
            return [given]
        shown = f"{given!r:.40}" if type(given) in (str, bool, float) else type(given).__name__
        raise ValueError(f"{place} must be a whole number, or null if not published, got {shown}")
    if not isinstance(given, list) or len(given) != shape[0]:
        got = f"a list of {len(given)}" if isinstance(given, list) else type(given).__name__
        raise ValueError(f"{place} must be a list of {shape[0]}, got {got}")
    parts = (_counts(each, shape[1:], f"{place}[{i}]") for i, each in enumerate(given))
    return [count for part in parts for count in part]


class Query(_Strict):
    """Whether a table can be released: the parameters of `ReleaseLog.check`; of a
    mechanism its name and its parameters.
    """

    table: Table
    where: dict[Text, Category | Categories] = Field(default_factory=dict)
    merge: dict[Text, dict[Text, Categories]] = Field(default_factory=dict)
    mechanism: dict[Text, Any] | None = None
    keys: Annotated[Plain, StringConstraints(min_length=1)] | None = None
    total: Text = "Total"
    threshold: int = 10
    values: int = 2
    certainty: float = 0.95
    advise: bool = True


class ReleaseQuery(Query):
    """A table that is released if it can be: also the parameters of `ReleaseLog.add`.
    Asked again with the same name, it is not released again.
    """

    name: Annotated[Plain, StringConstraints(min_length=1)]
    protection: Plain = ""
