"""How the counts of a published table were perturbed, and what was released of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.attack.mechanisms import Mechanism
from taciturn.release_log.mechanisms import Stored, mechanism_data, mechanism_of
from taciturn.schema import MAX_COUNT

__all__ = ["NOT_RELEASED", "Noise"]

Integers = npt.NDArray[np.int64]
NOT_RELEASED = -1


@dataclass(frozen=True, eq=False)
class Noise:
    """What a mechanism released of a table.

    Attributes
    ----------
    mechanism : Stored
        How each count was perturbed, or the records were swapped.
    keyed : bool
        Whether the noise follows from keys of the records: the same records have the
        same noise in all tables of the release; so are swapped records.
    keys : str or None
        What these keys are called, if other releases have the same; None for keys, or
        noise, that no other release has.
    released : array of int64, shape (repetitions, *sizes of the axes)
        What was released of each cell, each time; -1 where it was not.
    """

    mechanism: Stored
    keyed: bool
    keys: str | None
    released: Integers

    @cached_property
    def some(self) -> npt.NDArray[np.bool_]:
        """The cells of which something was released."""
        return np.asarray((self.released >= 0).any(axis=0))

    def without(self, cells: Sequence[int]) -> "Noise":
        """The same with some cells, by flat position, not released."""
        released = self.released.copy()
        released.reshape(len(released), -1)[:, cells] = NOT_RELEASED
        return replace(self, released=released)

    def as_json(self) -> dict[str, Any]:
        """How it was perturbed, in plain types."""
        return {
            "mechanism": mechanism_data(self.mechanism),
            "keyed": self.keyed,
            "keys": self.keys,
        }

    @classmethod
    def from_json(
        cls, given: Mapping[str, Any], released: Sequence[Sequence[int]], shape: tuple[int, ...]
    ) -> "Noise":
        """What `as_json` gave, with what was released in flat order.

        Raises
        ------
        ValueError, TypeError
            Not that, or what the mechanism does not give.
        ParameterError
            No mechanism that a log can hold.
        """
        keyed, keys = given["keyed"], given["keys"]
        if type(keyed) is not bool or not (keys is None or (keyed and isinstance(keys, str))):
            raise ValueError("keyed or keys are not what they must be")
        mechanism = mechanism_of(given["mechanism"])
        values = np.array(released, dtype=np.int64).reshape(-1, *shape)
        for value in np.unique(values[values != NOT_RELEASED]).tolist():
            gives = not isinstance(mechanism, Mechanism) or mechanism.support(value) is not None
            if not (0 <= value <= MAX_COUNT and gives):
                raise ValueError(f"{mechanism!r} does not give {value}")
        if not len(values) or (keyed and len(values) > 1):
            raise ValueError("so many repetitions are not possible")
        return cls(mechanism, keyed, keys, values)
