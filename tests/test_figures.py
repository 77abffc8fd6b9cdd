"""Printed figures stay on their side of limits."""

import pytest
from hypothesis import given, strategies as st

from taciturn.figures import beside

numbers = st.floats(-10, 10, allow_subnormal=False)


@pytest.mark.parametrize(
    ("value", "limits", "decimals", "text"),
    [
        (0.24098, (0.24,), 2, "0.241"),
        (0.24, (0.24,), 2, "0.24"),
        (0.7004, (0.7,), 2, "0.7004"),
        (3.97, (4,), 1, "3.97"),
        (399.6, (400,), 0, "399.6"),
        (0.99975, (0, 1), 3, "0.9998"),
        (0.00004, (0, 1), 3, "0.00004"),
        (0.0, (0, 1), 3, "0.000"),
        (1.0, (0, 1), 3, "1.000"),
        (float("nan"), (1,), 2, "nan"),
        (float("inf"), (1,), 2, "inf"),
    ],
)
def test_examples(value, limits, decimals, text):
    assert beside(value, *limits, decimals=decimals) == text


@given(numbers, st.lists(numbers, max_size=3), st.integers(0, 5))
def test_what_is_printed_compares_as_the_number_does(value, limits, decimals):
    printed = float(beside(value, *limits, decimals=decimals))
    assert abs(printed - value) <= 0.5000001 * 10.0**-decimals
    for limit in limits:
        assert (printed < limit, printed > limit) == (value < limit, value > limit)
