"""Record keys of the cell-key method: drawn, derived from a secret, and checked."""

import hmac
import os
import string
from collections.abc import Sequence
from math import log, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import ParameterError
from taciturn.tables.values import is_missing
from taciturn.validate import quoted, whole_number

__all__ = ["KEY_STEPS", "checked_keys", "derive_record_keys", "record_keys"]

Floats = npt.NDArray[np.float64]

KEY_STEPS: Final = 2**53
"""Keys are multiples of ``2**-53``, so that their sums are exact."""

_SECRET_BYTES: Final = 32
_FEW: Final = 16  # 32 random bytes have 17 or more different ones, but once in 10**9 times
_MANY_KEYS: Final = 10_000  # different ones are enough for any number of records
_RARE: Final = 1e-9  # chance that random keys are refused
_EVEN: Final = 0.2  # times 1 / sqrt(n): random keys are less evenly spread, but for `_RARE`
_SAME_STEP: Final = 1e-6
_TEXT: Final = frozenset(string.printable.encode())


def record_keys(n: int) -> Floats:
    """Draw record keys of the cell-key method: independent uniform numbers.

    They are a secret: whoever has them can take the noise away. Drawn once, from the
    system's entropy, and kept with the microdata, they make all tables of these
    consistent; new records get keys of their own. There is no seed, as whoever tries
    seeds would find the keys. Where keys cannot be kept, `derive_record_keys` computes
    them from a secret that can.

    Parameters
    ----------
    n : int
        Number of records.

    Returns
    -------
    ndarray
        float64 in ``[0, 1)``, shape ``(n,)``.

    Raises
    ------
    ParameterError
        Fewer than one record, or more than 10**9.

    References
    ----------
    Fraser & Wooton (2005), A proposed method for confidentialising tabular output to
    protect against differencing.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"sex": list("fmf")})
    >>> people["key"] = tc.perturbation.record_keys(len(people))
    >>> bool(people["key"].between(0, 1, inclusive="left").all())
    True
    """
    return _uniform(os.urandom(8 * whole_number(n, "n", least=1, most=10**9)))


def derive_record_keys(identifiers: Sequence[Any], *, secret: bytes | str) -> Floats:
    r"""Compute record keys of the cell-key method from identifiers and a secret.

    .. math:: k_r = 2^{-53} \lfloor 2^{-11}\, \text{HMAC}(s, \text{id}_r) \rfloor

    with the first eight bytes of HMAC-SHA-256, of the identifier in UTF-8, read as a
    whole number in little-endian order: the first byte counts least. The same secret
    gives the same record the same key in every extract of the microdata, whatever the
    order of the records.

    Parameters
    ----------
    identifiers : sequence of str or int
        One for each record, which stays the same from release to release. They are
        compared as text, so 7 and ``"7"`` are the same record.
    secret : bytes or str
        At least 32 random bytes, or their hexadecimal digits. Make it once, with
        ``secrets.token_hex(32)``, and keep it where the microdata are kept; without it
        the noise of new tables differs from that of old ones.

    Returns
    -------
    ndarray
        float64 in ``[0, 1)``, in the order of the identifiers.

    Raises
    ------
    ParameterError
        A secret that is short or that a person could have thought of: a number, text, a
        repetition, a progression; no identifiers, or one that is missing, blank text
        included, or stands twice.

    Notes
    -----
    A check can only refuse what is evidently not random. The hash of a password or the
    output of a generator with a seed passes, and is as guessable as the password or
    the seed.

    References
    ----------
    Krawczyk, Bellare & Canetti (1997), HMAC: keyed-hashing for message authentication,
    RFC 2104.

    Examples
    --------
    >>> import secrets, taciturn as tc
    >>> secret = secrets.token_hex(32)  # once; then read from where it is kept
    >>> first = tc.perturbation.derive_record_keys(["p1", "p2", "p3"], secret=secret)
    >>> later = tc.perturbation.derive_record_keys(["p3", "p1"], secret=secret)
    >>> bool(later[0] == first[2] and later[1] == first[0])
    True
    """
    key = _checked_secret(secret)
    names = _checked_identifiers(identifiers)
    return _uniform(b"".join(hmac.digest(key, name.encode(), "sha256")[:8] for name in names))


def checked_keys(keys: Any, records: int) -> Floats:
    """Record keys as float64, or raise `ParameterError`."""
    try:
        values = np.asarray(keys).astype(float)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"record keys must be numbers in [0, 1): {error}") from error
    if values.shape != (records,):
        raise ParameterError(
            f"there must be one record key for each of {records} records, got shape {values.shape}"
        )
    bad = np.flatnonzero(~((values >= 0) & (values < 1)))
    if len(bad):
        found = "is missing" if np.isnan(values[bad[0]]) else f"holds {values[bad[0]]:g}"
        raise ParameterError(f"record keys must be numbers in [0, 1): row {bad[0] + 1} {found}")
    flaw = _flaw_of_keys(values)
    if flaw:
        raise ParameterError(
            f"record keys must be random numbers, but these {records} {flaw}; make them with"
            " record_keys or derive_record_keys"
        )
    return values


def _flaw_of_keys(keys: Floats) -> str | None:
    """What independent uniform numbers would not show, once in a thousand million
    times.
    """
    n = len(keys)
    ordered, rank = np.sort(keys), np.arange(n)
    steps = np.diff(ordered)
    different = 1 + np.count_nonzero(steps)
    if different < min(n / 2, _MANY_KEYS):
        return f"have only {different} different value{'' if different == 1 else 's'}"
    # The Kolmogorov-Smirnov statistic, with the bound of Dvoretzky, Kiefer & Wolfowitz.
    distance = max((ordered - rank / n).max(), ((rank + 1) / n - ordered).max())
    even = n > 2 and np.ptp(steps) <= _SAME_STEP * steps.mean()
    if even or distance < _EVEN / sqrt(n):
        return "are evenly spaced"
    if distance > sqrt(log(2 / _RARE) / (2 * n)):
        return "are not spread uniformly over [0, 1)"
    return None


def _checked_secret(secret: Any) -> bytes:
    """A secret as bytes, or raise `ParameterError`, which does not show it."""
    flaw = None
    key = b""
    if not isinstance(secret, bytes | str):
        flaw = f"an object of type {type(secret).__name__}"
    else:
        text = secret.encode() if isinstance(secret, str) else secret
        key = text
        if isinstance(secret, str) or set(text) <= _TEXT:
            key, flaw = _from_hexadecimal(text)
        flaw = flaw or _flaw_of_bytes(key)
    if flaw:
        raise ParameterError(
            f"the secret of record keys must be at least {_SECRET_BYTES} random bytes or their"
            f" hexadecimal digits, got {flaw}; make one with secrets.token_bytes({_SECRET_BYTES})"
            f" or secrets.token_hex({_SECRET_BYTES})"
        )
    return key


def _from_hexadecimal(text: bytes) -> tuple[bytes, str | None]:
    """The bytes that hexadecimal digits stand for, or what else the text is."""
    if text.isdigit():
        return b"", "a number"
    try:
        return bytes.fromhex(text.decode()), None
    except ValueError:
        return b"", f"text of {len(text)} characters"


def _flaw_of_bytes(key: bytes) -> str | None:
    if len(key) < _SECRET_BYTES:
        return f"{len(key)} byte{'' if len(key) == 1 else 's'}"
    values = np.frombuffer(key, dtype=np.uint8)
    if min(len(set(key)), len(set(np.diff(values).tolist()))) <= _FEW:
        return f"{len(key)} bytes that repeat themselves"
    return None


def _checked_identifiers(identifiers: Any) -> list[str]:
    """Identifiers as text, or raise `ParameterError`."""
    if isinstance(identifiers, str | bytes) or not np.iterable(identifiers):
        raise ParameterError(
            "identifiers must be a sequence of text or whole numbers, one for each record; got"
            f" {type(identifiers).__name__}"
        )
    names: list[str] = []
    for row, value in enumerate(identifiers, start=1):
        if isinstance(value, bool | np.bool_) or not isinstance(value, str | int | np.integer):
            raise ParameterError(
                f"identifiers must be text or whole numbers: row {row} holds an object of type"
                f" {type(value).__name__}"
            )
        if is_missing(value):
            raise ParameterError(
                f"identifiers must not be missing: row {row} holds blank text, {quoted(value)}"
            )
        names.append(str(value))
    if not names:
        raise ParameterError("identifiers must be those of at least one record, got none")
    if len(set(names)) < len(names):
        first: dict[str, int] = {}
        row, name = next((r, n) for r, n in enumerate(names, 1) if first.setdefault(n, r) != r)
        raise ParameterError(
            f"identifiers must be different: rows {first[name]} and {row} have the same"
        )
    return names


def _uniform(entropy: bytes) -> Floats:
    """Uniform numbers in [0, 1), one from each eight random bytes."""
    whole = np.frombuffer(entropy, dtype="<u8") >> np.uint64(11)
    return whole.astype(np.float64) / KEY_STEPS
