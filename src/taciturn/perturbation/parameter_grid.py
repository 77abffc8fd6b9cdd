"""Releases of one method for every combination of values of its parameters."""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError, TaciturnError
from taciturn.progress import progress_bar
from taciturn.validate import quoted, seed_number

__all__ = ["grid"]


def grid(
    method: Callable[..., xr.DataArray],
    *data: Any,
    over: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    progressbar: bool = True,
    **options: Any,
) -> dict[str, xr.DataArray]:
    """Protect the same data by one method for each combination of values of its
    parameters.

    With ``random_seed=`` all combinations draw the same random numbers, so that
    differences between them are due to the parameters more than to chance.

    Parameters
    ----------
    method : callable
        A function of `perturbation`, or any that returns a table or replicates of one
        and takes the parameters by name.
    *data
        What it takes first, such as the table.
    over : mapping of str to sequence or mapping
        For each parameter that varies its values; or, where these have no short text of
        their own, such as perturbation tables, a mapping of names to them.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook, also that of
        a method which shows its own.
    **options
        All other arguments of the method, the same for all combinations, such as
        ``replicates=`` and ``random_seed=``.

    Returns
    -------
    dict of str to DataArray
        What `choose_protection` takes: the releases under the name of the method and
        the values, such as ``"random_round rounding_base=3"``.

    Raises
    ------
    ParameterError
        A `method` that cannot be called, no parameter or no value of one, a parameter
        that is in the options, too, or two combinations of one name.
    TaciturnError
        Whatever the method raises, with a note that names the combination.

    See Also
    --------
    choose_protection : Which of them to take.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> candidates = tc.perturbation.grid(
    ...     tc.random_round,
    ...     table,
    ...     over={"rounding_base": [3, 5, 10]},
    ...     replicates=20,
    ...     random_seed=1,
    ...     progressbar=False,
    ... )
    >>> list(candidates)[0]
    'random_round rounding_base=3'
    """
    if not callable(method):
        raise ParameterError(
            f"method must be a function, such as tc.random_round, got {quoted(method)}"
        )
    axes = {parameter: _named(parameter, values) for parameter, values in _checked(over).items()}
    if taken := sorted(set(axes) & set(options)):
        raise ParameterError(f"{taken[0]} is given twice: in over and by itself")
    if isinstance(options.get("random_seed"), np.random.Generator):
        options["random_seed"] = seed_number(options["random_seed"])  # one for all of them
    if _takes_progressbar(method):
        options["progressbar"] = progressbar
    title = getattr(method, "__name__", type(method).__name__)
    combinations = list(product(*(axis.items() for axis in axes.values())))
    released: dict[str, xr.DataArray] = {}
    with progress_bar(title, len(combinations), shown=progressbar) as bar:
        for combination in combinations:
            chosen = dict(zip(axes, combination, strict=True))
            words = ", ".join(f"{parameter}={text}" for parameter, (text, _) in chosen.items())
            values = {parameter: value for parameter, (_, value) in chosen.items()}
            try:
                released[f"{title} {words}"] = method(*data, **values, **options)
            except TaciturnError as error:
                error.add_note(f"This is of {title} with {words}.")
                raise
            bar.advance()
    return released


def _takes_progressbar(method: Callable[..., Any]) -> bool:
    try:
        return "progressbar" in signature(method).parameters
    except ValueError:  # some that are compiled do not say what they take
        return False


def _checked(over: Any) -> Mapping[str, Any]:
    if isinstance(over, Mapping) and over:
        return over
    raise ParameterError(
        f"over must map parameters to their values, such as {{'rounding_base': [3, 5]}}, got"
        f" {quoted(over)}"
    )


def _named(parameter: str, values: Any) -> dict[str, Any]:
    """Values of a parameter by what stands for each in a name."""
    if isinstance(values, Mapping):
        named = {str(text): value for text, value in values.items()}
    elif isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise ParameterError(
            f"over[{parameter!r}] must be a sequence of values or a mapping of names to them, got"
            f" {quoted(values)}"
        )
    else:
        named = {f"{value!s:.40}": value for value in values}
    if len(named) < max(len(values), 1):
        raise ParameterError(
            f"over[{parameter!r}] must have values that are written differently, at least one, got"
            f" {quoted(values)}"
        )
    return named
