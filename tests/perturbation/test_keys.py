"""Record keys: drawn or derived, the same over releases, and refused where they can be
guessed."""

import hashlib
import hmac
import random
import secrets

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st

import taciturn as tc
from taciturn.errors import ParameterError

SECRET = bytes.fromhex("8b1c4fd0a72e95e36607f3d918bb245c0ae176599dc43f7280f56cd1e81a934b")
IDENTIFIERS = ["p1", "p2", "p3"]
NOISE = tc.perturbation.perturbation_table(3, 1)


def use(keys, **options):
    """A table with these record keys."""
    return tc.perturbation.cell_key_records(
        pd.DataFrame({"x": ["a"] * len(keys)}),
        ["x"],
        perturbation=NOISE,
        keys=keys,
        **options,
    )


def test_drawn_keys_are_new_each_time_and_fill_the_range():
    one, two = tc.perturbation.record_keys(10_000), tc.perturbation.record_keys(10_000)
    assert len(np.intersect1d(one, two)) == 0
    assert ((one >= 0) & (one < 1)).all()
    assert (one * 2**53 % 1 == 0).all()
    use(one)
    with pytest.raises(TypeError, match="random_seed"):
        tc.perturbation.record_keys(3, random_seed=1)
    with pytest.raises(ParameterError, match=r"n must be .* from 1 to 1000000000, got 0"):
        tc.perturbation.record_keys(0)


def test_derived_keys_are_the_formula():
    expected = [
        (int.from_bytes(hmac.new(SECRET, name.encode(), hashlib.sha256).digest()[:8], "little"))
        // 2**11
        / 2**53
        for name in IDENTIFIERS
    ]
    derived = tc.perturbation.derive_record_keys(IDENTIFIERS, secret=SECRET)
    assert derived.tolist() == expected
    hexadecimal = tc.perturbation.derive_record_keys(IDENTIFIERS, secret=SECRET.hex())
    assert hexadecimal.tolist() == expected


def test_a_key_that_other_programs_give():
    """``openssl dgst -sha256 -mac HMAC`` of p1 starts with f4 63 ca 14 cb a4 8e 75, of
    which the first byte counts least."""
    derived = tc.perturbation.derive_record_keys(["p1"], secret=SECRET)
    assert derived[0] * 2**53 == 0x75_8E_A4_CB_14_CA_63_F4 >> 11


@pytest.mark.parametrize(
    "form", [list, np.array, pd.Series, pl.Series, tuple], ids=lambda form: form.__name__
)
def test_the_same_record_has_the_same_key_in_any_extract(form):
    numbers = list(range(100, 200))
    first = dict(
        zip(numbers, tc.perturbation.derive_record_keys(numbers, secret=SECRET), strict=True)
    )
    later = tc.perturbation.derive_record_keys(form(numbers[50::-1]), secret=SECRET)
    assert later.tolist() == [first[number] for number in numbers[50::-1]]
    as_text = tc.perturbation.derive_record_keys(form([str(n) for n in numbers]), secret=SECRET)
    assert as_text.tolist() == list(first.values())
    use(as_text)


def test_another_secret_gives_other_keys():
    one, two = (
        tc.perturbation.derive_record_keys(range(100), secret=secret)
        for secret in (SECRET, SECRET[::-1])
    )
    assert len(np.intersect1d(one, two)) == 0


@pytest.mark.parametrize("make", [secrets.token_bytes, secrets.token_hex], ids=["bytes", "hex"])
def test_what_the_message_recommends_is_accepted(make):
    for _ in range(200):
        tc.perturbation.derive_record_keys(IDENTIFIERS, secret=make(32))


@pytest.mark.parametrize(
    ("secret", "found"),
    [
        (42, "an object of type int"),
        (None, "an object of type NoneType"),
        ("", "0 bytes"),
        (b"", "0 bytes"),
        (b"\xff", "1 byte;"),
        ("hunter2", "text of 7 characters"),
        ("20240229", "a number"),
        ("3141592653589793238462643383279502884197169399375105820974944592", "a number"),
        ("correct horse battery staple and some more words", "text of 48 characters"),
        (b"correct horse battery staple and some more words", "text of 48 characters"),
        (SECRET[:16].hex(), "16 bytes"),
        (SECRET[:31], "31 bytes"),
        (bytes(32), "32 bytes that repeat"),
        (b"\xaa" * 64, "64 bytes that repeat"),
        ("deadbeef" * 8, "32 bytes that repeat"),
        (SECRET[:16] * 2, "32 bytes that repeat"),
        (bytes(range(32)), "32 bytes that repeat"),
        (bytes(range(250, 186, -2)), "32 bytes that repeat"),
        ((1234567).to_bytes(32), "32 bytes that repeat"),
    ],
)
def test_secrets_that_can_be_guessed(secret, found):
    with pytest.raises(ParameterError, match=found) as refused:
        tc.perturbation.derive_record_keys(IDENTIFIERS, secret=secret)
    message = str(refused.value)
    assert "at least 32 random bytes" in message
    assert "secrets.token_bytes(32) or secrets.token_hex(32)" in message
    if isinstance(secret, str) and secret:
        assert secret not in message


@pytest.mark.parametrize(
    ("identifiers", "message"),
    [
        ([], "at least one record"),
        ("abc", "a sequence of text or whole numbers"),
        (7, "a sequence of text or whole numbers"),
        (["a", None], "row 2 holds an object of type NoneType"),
        ([1.0, 2.0], "row 1 holds an object of type float"),
        ([True], "row 1 holds an object of type bool"),
        (["a", ""], "row 2 holds blank text, ''"),
        (["a", "b", " \t"], r"row 3 holds blank text, ' \\t'"),
        (np.array(["a", "\u00a0"]), "row 2 holds blank text"),
        (["a", "b", "c", "b"], "rows 2 and 4 have the same"),
        (["7", 7], "rows 1 and 2 have the same"),
    ],
)
def test_identifiers_that_do_not_identify(identifiers, message):
    with pytest.raises(ParameterError, match=message):
        tc.perturbation.derive_record_keys(identifiers, secret=SECRET)


n = 60
SHUFFLED = random.Random(1).sample(range(n), n)


@pytest.mark.parametrize(
    ("keys", "flaw"),
    [
        ([0.5] * 3, "only 1 different value"),
        ([0.0, 0.5] * 30, "only 2 different values"),
        ((np.arange(n) % 10) / 10, "only 10 different values"),
        (np.arange(10) / 10, "evenly spaced"),
        ([0.1, 0.3, 0.2], "evenly spaced"),
        (np.arange(n) / n, "evenly spaced"),
        (np.array(SHUFFLED) / n, "evenly spaced"),
        (np.arange(n) * 1e-6, "evenly spaced"),
        ((np.arange(n) * 0.6180339887) % 1, "evenly spaced"),
        (np.round((np.arange(n) + 0.5) / n, 3), "evenly spaced"),
        (np.sqrt(np.arange(n)) * 1e-3, "not spread uniformly"),
        (np.random.default_rng(1).random(500) ** 3, "not spread uniformly"),
    ],
)
def test_keys_that_can_be_guessed(keys, flaw):
    with pytest.raises(ParameterError, match=f"must be random numbers, .* {flaw}.*record_keys"):
        use(keys)


@given(st.integers(1, 300), st.integers(0, 2**32))
def test_random_keys_are_accepted(records, seed):
    keys = np.random.default_rng(seed).random(records)
    use(keys)
    use(np.sort(keys))


def test_keys_of_five_digits_are_enough_for_many_records():
    use(np.random.default_rng(1).integers(10**5, size=200_000) / 10**5)
