"""Model cards: changed texts, and tables that are links out of the card's folder."""

import tomllib
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import taciturn as tc
from hostile.kinds import Kind, mutated

__all__ = ["KINDS"]

TABLE = "area,sex,count\nA,f,30\nA,m,20\nB,f,12\nB,m,7\n"
PIECES = (
    *(b'"', b"=", b"[", b"]", b"{", b"}", b"\n", b",", b".", b"'", b"#", b"\0", b"-", b"e9", b"_"),
    *(b"nan", b"inf", b"-inf", b"true", b"1e400", b"99999999999999999999", b"0x1", b"1979-05-27"),
    *(
        b'"/etc/passwd"',
        b'"../x.csv"',
        b'"\\u001b[31m"',
        b"\xff",
        b"[[a]]\n",
        b"[fit]\n",
        b"[" * 300,
    ),
    *(b"LinearPool", b"LogLinear", b"DirichletLogLinear", b"members", b"not_given", b"a.b.c = 1\n"),
)


@cache
def card() -> bytes:
    """A card of a table in a file."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text(TABLE)
        sample = tc.draw_sample(tc.read_table(table), fraction=0.5, random_seed=1)
        fit, reference = (
            tc.LogLinear().fit(sample, population_size=69, draws=draws, chains=2, random_seed=draws)
            for draws in (100, 1000)
        )
        tc.cards.write_card(
            Path(folder) / "card.toml",
            fit,
            reference=reference,
            table=table,
            fraction=0.5,
            random_seed=1,
            citation="Made up.",
            calibration="A plug-in estimator has no prior.",
            command="by hand",
        )
        return (Path(folder) / "card.toml").read_bytes()


def write_text(folder: Path, random: Random, number: int) -> Path:
    (folder / "table.csv").write_text(TABLE)
    path = folder / "card.toml"
    path.write_bytes(mutated(card(), random, PIECES))
    return path


def write_link(folder: Path, random: Random, number: int) -> Path:
    """A table that is elsewhere: a link, one in a linked folder, a link to a link."""
    inside, outside = folder / "cards", folder / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "table.csv").write_text(TABLE)
    name = b"sub/table.csv" if number == 1 else b"table.csv"
    if number == 1:
        (inside / "sub").symlink_to(outside)
    else:
        (inside / "table.csv").symlink_to(
            (outside / "table.csv", None, inside / "next.csv")[number]
        )
    if number == 2:
        (inside / "next.csv").symlink_to("../outside/table.csv")
    (inside / "card.toml").write_bytes(card().replace(b'"table.csv"', b'"' + name + b'"'))
    return inside / "card.toml"


def read(path: Path) -> tc.cards.Card:
    """Read a card, its text and its table."""
    found = tc.cards.load_card(path)
    str(found)
    found.load_sample()
    return found


def wrong_card(path: Path, found: tc.cards.Card) -> str | None:
    """What a card says otherwise than its text."""
    said = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    if found.estimator.spec()["estimator"] != said["estimator"]["estimator"]:
        return "another estimator"
    for name in ("fit", "reference"):
        run = getattr(found, name)
        if {key: dict(row) for key, row in run.summary.items()} != said[name]["summary"]:
            return f"other numbers of {name}"
    size = (found.table.population_size, found.table.sample_size)
    return (
        None
        if size == (said["table"]["population_size"], said["sample"]["size"])
        else f"sizes {size}"
    )


def followed(path: Path, found: tc.cards.Card) -> str:
    """None of the links may be followed."""
    return "the table of another folder"


KINDS = (
    Kind("cards, texts", write_text, read, wrong_card),
    Kind("cards, links", write_link, read, followed, 3),
)
