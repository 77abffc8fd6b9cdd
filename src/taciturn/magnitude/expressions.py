"""SQL for what a column of the records says, NULL where it does not say it."""

from typing import Any, Final

from taciturn.tables.spelling import HIDDEN, MOST_LETTERS

__all__ = [
    "MAX_STEPS",
    "MAX_WEIGHT",
    "WEIGHT_DECIMALS",
    "WHOLE",
    "flag_sql",
    "identity_sql",
    "odd_text_sql",
    "steps_sql",
    "weight_sql",
]

MAX_STEPS: Final = 10**15
"""Largest magnitude of a contribution or a cell in steps: fifteen digits survive double
precision at any decimals."""

WEIGHT_DECIMALS: Final = 6
"""Decimals that sampling weights are read to."""

MAX_WEIGHT: Final = 10**6

WHOLE: Final = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
}
"""DuckDB's types of whole numbers, up to 64 bits."""

_FLOATS: Final = {"DOUBLE", "FLOAT"}
_YES: Final = {"1", "1.0", "true"}
_NO: Final = {"0", "0.0", "false"}


def steps_sql(column: str, kind: str, decimals: int, *, rounded: bool = False) -> str:
    """A number in whole steps of ``10**-decimals``; more decimals are refused, or
    rounded.
    """
    limit = MAX_STEPS // 10**decimals
    if kind in WHOLE:
        return (
            f"CASE WHEN {column} BETWEEN {-limit} AND {limit} THEN {column}::BIGINT *"
            f" {10**decimals} END"
        )
    if kind in _FLOATS:
        scaled = f"round({column}::DOUBLE * 1e{decimals})"
        # Divided again, a whole number of steps gives the double that its decimal text
        # is read as.
        exact = "" if rounded else f" AND {scaled} / 1e{decimals} = {column}"
        return (
            f"CASE WHEN isfinite({column}) AND abs({scaled}) <= {MAX_STEPS}{exact} THEN"
            f" {scaled}::BIGINT END"
        )
    # Of fifteen digits, the double nearest to a decimal number, multiplied and rounded,
    # gives its steps exactly.
    text = f"{column}::VARCHAR"
    places = "[0-9]*" if rounded else f"[0-9]{{0,{decimals}}}0*"
    written = f"regexp_full_match({text}, {_literal(f'[+-]?[0-9]*([.]{places})?')})"
    steps = f"round(TRY_CAST({text} AS DOUBLE) * 1e{decimals})"  # none without a digit
    return (
        f"CASE WHEN {written} AND abs({steps}) <= {MAX_STEPS} THEN TRY_CAST({steps} AS BIGINT) END"
    )


def weight_sql(column: str, kind: str) -> str:
    """A sampling weight in steps of ``10**-6``."""
    steps = steps_sql(column, kind, WEIGHT_DECIMALS, rounded=True)
    least, most = 10**WEIGHT_DECIMALS, MAX_WEIGHT * 10**WEIGHT_DECIMALS
    return f"CASE WHEN {steps} BETWEEN {least} AND {most} THEN {steps} END"


def identity_sql(column: str, kind: str) -> str:
    """What contributors or holdings are told apart by."""
    if kind in WHOLE:
        return column
    if kind in _FLOATS:
        return f"CASE WHEN NOT isnan({column}) THEN {column} END"
    return f"CASE WHEN trim({column}::VARCHAR) <> '' THEN {column}::VARCHAR END"


def odd_text_sql(column: str) -> str:
    """Whether a text might look like another; what is seen of any other text is the
    text itself.
    """
    hidden = "".join(f"\\x{{{ord(mark):X}}}" for mark in sorted(HIDDEN))
    letter = f"[^\\p{{C}}\\p{{Z}}{hidden}]"
    return (
        f"NOT regexp_full_match({column}, {_literal(f'{letter}+( {letter}+)*')})"
        f" OR {column} <> nfc_normalize({column}) OR length({column}) > {MOST_LETTERS}"
    )


def flag_sql(column: str, meanings: list[Any] | None) -> str:
    """Whether a contributor asked for protection, or waived it; `meanings` where the
    column holds codes.
    """
    if meanings is not None:
        texts = [str(meaning).strip().lower() for meaning in meanings]
        listed = [
            f"WHEN {code} THEN {text in _YES}"
            for code, text in enumerate(texts)
            if text in _YES | _NO
        ]
        return f"CASE {column} {' '.join(listed)} END" if listed else "NULL::BOOLEAN"
    text = f"lower(trim({column}::VARCHAR))"
    yes, no = (", ".join(_literal(word) for word in sorted(words)) for words in (_YES, _NO))
    return f"CASE WHEN {text} IN ({yes}) THEN true WHEN {text} IN ({no}) THEN false END"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
