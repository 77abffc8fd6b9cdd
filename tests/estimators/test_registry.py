"""The table of estimators: it agrees with the classes, and reading it loads nothing."""

import inspect
import subprocess
import sys

import pytest

import taciturn as tc
from taciturn.errors import ParameterError
from taciturn.estimators import ESTIMATORS, BayesianEstimator, Estimator, PlugInEstimator
from taciturn.estimators.registry import COMMANDS

BASES = {Estimator, BayesianEstimator, PlugInEstimator}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_entry_agrees_with_its_class(command) -> None:
    cls = ESTIMATORS[COMMANDS[command].name]
    assert cls.__name__ == COMMANDS[command].name
    assert cls.command_name == command
    assert cls.takes_formula is COMMANDS[command].takes_formula
    assert cls is getattr(tc, cls.__name__)


def test_no_estimator_is_missing() -> None:
    public = (getattr(tc.estimators, name) for name in tc.estimators.__all__)
    classes = {own for own in public if inspect.isclass(own) and issubclass(own, Estimator)}
    assert set(ESTIMATORS.values()) == classes - BASES


@pytest.mark.parametrize("cls", ESTIMATORS.values())
def test_a_formula_goes_to_estimators_that_take_one(cls) -> None:
    if not cls.takes_formula:
        with pytest.raises(ParameterError, match=f"{cls.__name__} takes no formula"):
            cls().with_formula("~ a")
    elif cls is tc.LinearPool:
        members = {**cls().members, "dirichlet": tc.DirichletLogLinear("~ a")}
        assert cls().with_formula("~ a") == cls(members)
        kept = cls(shares={"dirichlet": 0.25, "restaurant": 0.75}).with_formula("~ a")
        assert kept == cls(members, shares={"dirichlet": 0.25, "restaurant": 0.75})
    else:
        assert cls().with_formula("~ a") == cls(formula="~ a")


def test_what_authors_override_is_public() -> None:
    """The contract of the bases stands in public methods, each with a docstring."""
    for base in BASES:
        for name in base.__abstractmethods__:
            assert not name.startswith("_")
            assert getattr(base, name).__doc__


def test_reading_the_names_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom taciturn.estimators.registry import COMMANDS\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"arviz", "numba", "numpy", "pandas", "pymc", "pytensor", "scipy", "xarray"}
    assert not set(done.stdout.split()) & heavy
