"""Several quantities of the same records: each as if it were alone, or all with the
same cells suppressed.
"""

import numpy as np
import pandas as pd
import pytest

import taciturn as tc
from taciturn.errors import ParameterError
from taciturn.magnitude import MinimumFrequency

VARIABLES = ["area", "trade"]
RULE = tc.PPercent(15)
SEARCH = {"contributor": "firm", "random_seed": 3, "progressbar": False, "time_limit": 10}


def firms(seed=11, number=50):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "firm": generator.integers(0, number // 2, number),
            "area": generator.choice(list("klmn"), number),
            "trade": generator.choice(list("uvw"), number),
            "sales": np.round(generator.lognormal(4, 1.5, number)),
            "staff": generator.integers(1, 40, number),
            "exports": np.round(generator.lognormal(3, 2, number), 1),
        }
    )


def protect(value, rules=RULE, **options):
    return tc.protect_table(firms(), VARIABLES, value, rules, **{**SEARCH, **options})


def hidden(table):
    return {
        (names, at)
        for names, status in table.pattern.status.items()
        for at in map(tuple, np.argwhere(status.values != "safe").tolist())
    }


@pytest.fixture(scope="module")
def alone():
    decimals = {"sales": 0, "staff": 0, "exports": 1}
    return {value: protect(value, decimals=places) for value, places in decimals.items()}


@pytest.fixture(scope="module")
def alike():
    return protect(["sales", "staff"], same_cells=True)


def test_each_is_protected_as_if_it_were_alone_in_any_order(alone):
    decimals = {"sales": 0, "staff": 0, "exports": 1}
    found = protect(["exports", "sales", "staff"], decimals=decimals)
    assert list(found) == ["exports", "sales", "staff"]
    for value, table in found.items():
        assert (table.value, table.decimals) == (value, decimals[value])
        assert table.pattern.complete
        for names, released in alone[value].tables.items():
            assert table.tables[names].identical(released)
    assert len({frozenset(hidden(table)) for table in found.values()}) == 3


def test_the_seed_of_a_generator_is_drawn_once():
    given = [np.random.default_rng(8), np.random.default_rng(8)]
    found = protect(["sales", "staff"], random_seed=given[0])
    other = protect(["staff", "sales"], random_seed=given[1])
    assert {value: hidden(found[value]) for value in other} == {
        value: hidden(table) for value, table in other.items()
    }


def test_what_is_said_by_quantity(alone):
    told = pd.DataFrame([("k", "u", "sensitive")], columns=[*VARIABLES, "status"])
    rules = {"sales": RULE, "staff": [MinimumFrequency(2)]}
    apriori = {"sales": None, "staff": told}
    found = protect(["sales", "staff"], rules, apriori=apriori)
    assert hidden(found["sales"]) == hidden(alone["sales"])
    single = protect("staff", MinimumFrequency(2), apriori=told)
    assert hidden(found["staff"]) == hidden(single)
    assert found["staff"].sensitive["area", "trade"].attrs["rules"] == "MinimumFrequency(2)"
    assert single.pattern.status["area", "trade"].sel(area="k", trade="u") == "primary"


def test_the_same_cells_are_suppressed_for_all(alone, alike):
    both = hidden(alone["sales"]) | hidden(alone["staff"])
    assert min(len(both - hidden(alone[value])) for value in alike) > 0
    for value, table in alike.items():
        assert hidden(table) == both
        for names, released in table.tables.items():
            suppressed = table.pattern.status[names] != "safe"
            assert (released["value"].isnull() == suppressed).all()
            primary = alone[value].pattern.status[names] == "primary"
            assert ((table.pattern.status[names] == "primary") == primary).all()
        secondary = [
            1 + total.values[kind.values == "secondary"]
            for total, kind in zip(totals(value), table.pattern.status.values(), strict=True)
        ]
        assert table.pattern.cost == pytest.approx(np.concatenate(secondary).sum())
        assert 0 < table.pattern.bound <= alone[value].pattern.cost <= table.pattern.cost
        assert table.pattern.rank_decrease >= alone[value].pattern.rank_decrease


def totals(value):
    tables = tc.magnitude.tabulate_margins(firms(), VARIABLES, value, contributor="firm")
    return [table["total"] for table in tables.values()]


def test_more_suppressed_cells_protect_as_well(alone, alike):
    """An attack on each release leaves every sensitive cell its protection level, and
    as much as its own pattern does.
    """
    checked = 0
    for value, table in alike.items():
        tables = tc.magnitude.tabulate_margins(firms(), VARIABLES, value, contributor="firm")
        for names, audit in alone[value].pattern.audit.items():
            cells = table.pattern.status[names] == "primary"
            bounds = tc.attacker_bounds(
                table.pattern.release, margin=names, cells=cells, progressbar=False
            )
            assert bounds.equals(table.pattern.audit[names])
            level = tc.magnitude.protection_levels(tables[names], RULE)
            total = tables[names]["total"]
            low, high = (total - level).clip(min=0), total + level
            for least, most in ((low, high), (audit["lower"], audit["upper"])):
                assert (bounds["lower"] <= least).where(cells, other=True).all()
                assert (bounds["upper"] >= most).where(cells, other=True).all()
            checked += int(cells.sum())
    assert checked > 3


def test_nor_does_a_single_contributor_work_out_more(alike):
    """Who is alone in a suppressed cell knows it; no other sensitive cell is left with
    a single value.
    """
    checked = 0
    for value, table in alike.items():
        tables = tc.magnitude.tabulate_margins(firms(), VARIABLES, value, contributor="firm")
        suppressed = {names: s != "safe" for names, s in table.pattern.status.items()}
        for names, cells in tables.items():
            for at in np.argwhere((cells["contributors"] == 1).values & suppressed[names].values):
                known = {key: mask.copy() for key, mask in suppressed.items()}
                known[names].values[tuple(at)] = False
                release = tc.LinkedTables(cells_of(tables), list(tables), suppressed=known)
                for other, status in table.pattern.status.items():
                    primary = (status == "primary") & known[other]
                    if primary.any():
                        bounds = tc.attacker_bounds(
                            release, margin=other, cells=primary, progressbar=False
                        )
                        assert not bounds["disclosed"].where(primary, other=False).any()
                        checked += 1
    assert checked > 3


def cells_of(tables):
    return next(iter(tables.values()))["total"]


def test_what_must_be_published_in_one_quantity_is_not_suppressed_for_another(alone):
    names, at = next(
        (names, at)
        for names, at in sorted(hidden(alone["sales"]) - hidden(alone["staff"]), reverse=True)
        if len(names) == 2
    )
    status = alone["sales"].pattern.status[names]
    cell = {name: status[name].values[i].item() for name, i in zip(names, at, strict=True)}
    told = pd.DataFrame([cell | {"status": "published"}])
    with pytest.raises(ParameterError, match="is to be published in 'staff', and suppressed in"):
        protect(["sales", "staff"], same_cells=True, apriori={"sales": None, "staff": told})


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        ([], {}, r"value must name one column or several, each once, got \[\]"),
        (["sales", "sales"], {}, "value must name one column or several, each once"),
        (["sales"], {"rules": {"staff": RULE}}, r"rules must be one for all quantities, .*'sales'"),
        (["sales"], {"decimals": {}}, "decimals must be one for all quantities"),
        (["sales", "value"], {}, None),
        (["sales", "status"], {}, "must not hold 'status'"),
    ],
)
def test_refused(value, options, message):
    if message is None:
        frame = firms().assign(value=1)
        assert "value" in tc.protect_table(frame, VARIABLES, value, RULE, **SEARCH)
        return
    with pytest.raises(ParameterError, match=message):
        protect(value, **options)
