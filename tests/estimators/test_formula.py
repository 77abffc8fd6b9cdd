"""Formulas: what is accepted, what it means, and that nothing else gets past or is ever
evaluated."""

import builtins

import pytest

from taciturn.errors import FormulaError
from taciturn.estimators.formula import generating_class, main_effects, parse_formula

ABC = ("a", "b", "c")
A, B, C, AB, AC, BC, ALL = (
    ("a",),
    ("b",),
    ("c",),
    ("a", "b"),
    ("a", "c"),
    ("b", "c"),
    ("a", "b", "c"),
)


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        (None, (A, B, C)),
        ("~ 1", ()),
        ("1", ()),
        ("a", (A,)),
        ("~ a", (A,)),
        ("~a+b", (A, B)),
        ("  ~  b +\ta\n", (A, B)),  # in the table's order, whatever the formula's
        ("~ a:b", (A, B, AB)),  # hierarchical: an interaction brings its lower orders
        ("~ b:a", (A, B, AB)),
        ("~ a*b", (A, B, AB)),
        ("~ a + a + a:a", (A,)),
        ("~ a*b + c", (A, B, C, AB)),
        ("~ c + a:b", (A, B, C, AB)),
        ("~ a + b:c", (A, B, C, BC)),  # : binds before +
        ("~ (a + b):c", (A, B, C, AC, BC)),
        ("~ (a + b)*c", (A, B, C, AC, BC)),
        ("~ a*b*c", (A, B, C, AB, AC, BC, ALL)),
        ("~ (a + b + c)^1", (A, B, C)),
        ("~ (a + b + c)^2", (A, B, C, AB, AC, BC)),
        ("~ (a + b + c) ^ 3", (A, B, C, AB, AC, BC, ALL)),
        ("~ (a + b:c)^2", (A, B, C, AB, AC, BC, ALL)),
        ("~ a + b^2", (A, B)),  # ^ binds first, and b:b is b
        ("~ ((a + b)^2 + c)", (A, B, C, AB)),
    ],
)
def test_accepted_forms(formula: str | None, terms: tuple[tuple[str, ...], ...]) -> None:
    assert parse_formula(formula, ABC) == terms


@pytest.mark.parametrize(
    "name", ["travel mode", "sex (2001)", "1", "a+b", "naïve", "größe", "__import__('os')", "("]
)
def test_any_name_in_backticks(name: str) -> None:
    assert parse_formula(f"~ `{name}` * b", (name, "b")) == ((name,), ("b",), (name, "b"))


def test_main_effects_and_generating_class() -> None:
    assert main_effects(ABC) == (A, B, C)
    assert generating_class(parse_formula("~ a*b + c", ABC)) == (C, AB)
    assert generating_class(parse_formula("~ a*b*c", ABC)) == (ALL,)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("", "is empty"),
        ("~", "is empty"),
        ("   ", "is empty"),
        ("~ 1 + a", "holds '1'"),
        ("~ 0 + a", "holds '0'"),
        ("~ a - 1", "holds '-'"),
        ("~ a - b", "holds '-'"),
        ("~ a | b", r"holds '\|'"),
        ("~ .", r"holds '\.'"),
        ("~ a.b", r"holds '\.'"),
        ("~ a / b", "holds '/'"),
        ("~ 'a'", 'holds "\'"'),
        ('~ "a"', "holds '\"'"),
        ("~ a ~ b", "holds '~'"),
        ("~ a % b", "holds '%'"),
        ("~ {a}", "holds '{'"),
        ("~ a[0]", r"holds '\['"),
        ("~ a; b", "holds ';'"),
        ("~ a, b", "holds ','"),
        ("~ a = b", "holds '='"),
        ("~ a\x00", r"holds '\\x00'"),
        ("~ `a", "holds '`'"),
        ("~ a ** 2", "holds '2'"),
        ("~ (a + b)^0", r"a power is a whole number from 1 to 99, .* has '\^0'"),
        ("~ (a + b)^-1", "a power is a whole number"),
        ("~ (a + b)^2.5", r"holds '\.'"),
        ("~ (a + b)^100", "a power is a whole number from 1 to 99"),
        ("~ (a + b)^9999999999", "a power is a whole number from 1 to 99"),
        ("~ (a + b)^a", "a power is a whole number"),
        ("~ a 2", "holds '2'"),
        ("~ d", "names 'd': the table's variables are 'a', 'b', 'c'"),
        ("count ~ a", "names 'count'"),
        ("~ A", "names 'A'"),
        ("~ log(a)", "names 'log'"),
        ("~ a(b)", "cannot read the formula"),
        ("~ C(a)", "names 'C'"),
        ("~ __import__('os')", "names '__import__'"),
        ("~ `__import__('os').system('true')`", 'names "__import__'),
        ("~ __class__", "names '__class__'"),
        ("~ a.__class__", r"holds '\.'"),
        ("~ v0", "names 'v0'"),
        ("~ a b", "cannot read the formula '~ a b'"),
        ("~ a +", "cannot read"),
        ("~ a::b", "cannot read"),
        ("~ ()", "is empty"),
        ("~ (a", "cannot read"),
        ("~ a)", "cannot read"),
        ("~ )a(", "cannot read"),
        ("~ ^2", "cannot read"),
        ("~ a + ^2", "cannot read"),
    ],
)
def test_refused_and_why(formula: str, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        parse_formula(formula, ABC)


@pytest.mark.parametrize("formula", [1, 1.5, b"~ a", ["a"], ("a", "b"), True])
def test_only_text(formula: object) -> None:
    with pytest.raises(FormulaError, match=f"a formula is text, got {type(formula).__name__}"):
        parse_formula(formula, ABC)  # type: ignore[arg-type]


def test_nothing_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a formula was evaluated")

    parse_formula("~ a", ABC)  # what is imported on first use is imported now
    with monkeypatch.context() as patched:
        for name in ("eval", "exec", "compile"):
            patched.setattr(builtins, name, refuse)
        terms = parse_formula("~ (a + `b`)^2 * c", ABC)
        with pytest.raises(FormulaError):
            parse_formula("~ __import__('os')", ABC)
    assert terms == (A, B, C, AB, AC, BC, ALL)


def test_hostile_sizes_neither_recurse_nor_explode() -> None:
    many = tuple(f"v{i}" for i in range(8))
    # Expanded term by term this would be 8 ** 99 products.
    assert len(parse_formula(f"({'+'.join(many)})^99", many)) == 2**8 - 1
    assert parse_formula("((((a + b)^99)^99)^99)^2", ABC) == (A, B, AB)
    for formula in (
        "(" * 100_000 + "a" + ")" * 100_000,
        "+".join(["a"] * 100_000),
        "((((((a+b+c)^9)^9)^9)^9)^9)^9",
    ):
        with pytest.raises(FormulaError, match="is too long"):
            parse_formula(formula, ABC)
    assert parse_formula("(" * 499 + "a" + ")" * 499, ABC) == (A,)


def test_a_message_stays_readable() -> None:
    with pytest.raises(FormulaError, match="holds '!'") as caught:
        parse_formula("a + " * 100_000 + "!", ABC)
    assert len(str(caught.value)) < 400
