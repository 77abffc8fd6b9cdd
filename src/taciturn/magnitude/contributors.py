"""Names of contributors and holdings: no two that look alike are told apart."""

from taciturn.errors import TableError
from taciturn.magnitude.database import Database
from taciturn.magnitude.expressions import odd_text_sql
from taciturn.tables.spelling import check_spelling, check_types, seen, spelled
from taciturn.tables.values import is_missing

__all__ = ["check_contributors"]


def check_contributors(database: Database) -> None:
    """Raise `TableError` unless what is seen of the names of contributors, and of
    holdings, tells them apart, as labels of cells.
    """
    for short in ("c", "h"):
        if short not in database.roles.columns:
            continue
        if short in database.meanings:
            _check_meanings(database, short)
        elif database.types("records")[short] == "VARCHAR":
            _check_texts(database, short)


def _check_meanings(database: Database, short: str) -> None:
    """Of names that are all known here."""
    codes = [code for code, name in enumerate(database.meanings[short]) if not is_missing(name)]
    names = [database.meanings[short][code] for code in codes]
    texts = list(map(str, names))

    def place(at: int) -> str:
        [(row,)] = database.fetch(f"SELECT min(row) FROM records WHERE {short} = {codes[at]}")
        return f"{database.roles.columns[short]!r} in row {row} of {database.origin}"

    if len(set(texts)) < len(texts):  # such as 1 and "1"
        at = next(at for at, text in enumerate(texts) if text in texts[:at])
        raise TableError(f"{place(at)} is written as another: {spelled(texts[at])}")
    check_types(names, place)
    check_spelling(texts, place)


def _check_texts(database: Database, short: str) -> None:
    """Of names that the database holds, of which few are looked at."""
    odd = database.fetch(
        f"SELECT {short}, min(row) FROM records WHERE {odd_text_sql(short)} GROUP BY 1 ORDER BY 2"
    )
    if not odd:
        return
    place = f"{database.roles.columns[short]!r} in row {{}} of {database.origin}".format
    check_spelling([text for text, _ in odd], lambda at: place(odd[at][1]))
    alike = {seen(text): (text, row) for text, row in odd if seen(text) != text}
    found = database.connection.execute(
        f"SELECT {short}, min(row) FROM records WHERE {short} IN (SELECT unnest(?)) GROUP BY 1",
        [list(alike)],
    ).fetchall()
    if found:
        name, row = found[0]
        text, other_row = alike[name]
        check_spelling([name, text], lambda at: place([row, other_row][at]))
