"""Magnitude tables that share cells, from records and aggregated."""

import numpy as np
import pandas as pd
import pytest

import taciturn as tc
from taciturn.errors import ParameterError, TableError

OPTIONS = {"random_seed": 1, "progressbar": False, "time_limit": 60}
RULE = tc.PPercent(20)


def firms(seed, records=90):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "branch": generator.choice(list("uvwxyz"), records),
            "area": generator.choice(list("NSW"), records),
            "size": generator.choice(["small", "large"], records),
            "sales": np.round(generator.lognormal(4, 1.3, records)).astype(int) + 1,
        }
    )
    return frame.assign(firm=np.arange(records))


SECTIONS = pd.DataFrame({"branch": list("uvwxyz"), "section": list("AAABBB")})


def tabulated(frame):
    options = {"contributor": "firm"}
    return {
        "area": tc.magnitude.tabulate_margins(
            frame, ["branch", "area"], "sales", hierarchies={"branch": SECTIONS}, **options
        ),
        "size": tc.magnitude.tabulate_margins(
            frame.assign(section=frame["branch"].map(SECTIONS.set_index("branch")["section"])),
            ["section", "size"],
            "sales",
            **options,
        ),
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_shared_cells_have_one_status_and_sensitive_ones_their_interval(seed):
    tables = tabulated(firms(seed))
    done = tc.suppression.protect_tables(tables, RULE, **OPTIONS)
    for names in [("section",), ()]:
        one, two = (done[name].tables[names] for name in done)
        assert one["status"].values.tolist() == two["status"].values.tolist()
    for name, protected in done.items():
        for names, audit in protected.pattern.audit.items():
            table = tables[name][names]
            primary = protected.pattern.status[names].values == "primary"
            assert (primary == protected.sensitive[names]["sensitive"].values).all()
            level = tc.magnitude.protection_levels(table, RULE)
            total = table["total"]
            assert (audit["upper"] >= total + level).values[primary].all()
            assert (audit["lower"] <= (total - level).clip(min=0)).values[primary].all()
    assert sum(protected.pattern.n_primary for protected in done.values()) > 0
    assert not any(protected.pattern.unproved for protected in done.values())


def test_a_single_contributor_of_one_table_works_out_nothing_in_the_other():
    frame = pd.DataFrame(
        [(b, a, s, x) for b in "uvw" for a in "NSW" for s in "xy" for x in (30, 31, 33)],
        columns=["branch", "area", "size", "sales"],
    )
    alone = pd.DataFrame([("u", "T", "z", 50), ("v", "T", "z", 40)], columns=list(frame))
    frame = pd.concat([frame, alone], ignore_index=True)
    tables = {
        name: tc.magnitude.tabulate_margins(frame, ["branch", name], "sales")
        for name in ("area", "size")
    }
    rule = tc.magnitude.MinimumFrequency(2)
    done = tc.suppression.protect_tables(tables, rule, **OPTIONS)
    # Both cells of area T and of size z are primary: each firm would know the other.
    for name, protected in done.items():
        hidden = protected.tables["branch", name]["status"] == "suppressed"
        label = {"area": "T", "size": "z"}[name]
        assert hidden.sel({name: label}).sum() == 3 or bool(
            protected.tables[name,]["status"].sel({name: label}) == "suppressed"
        )


def test_tables_that_contradict_each_other_are_refused():
    frame = firms(0)
    tables = tabulated(frame)
    more = {names: table.copy(deep=True) for names, table in tables["size"].items()}
    more["section",]["contributors"][0] += 1
    with pytest.raises(TableError, match="must have as many contributors in all tables"):
        tc.suppression.protect_tables({**tables, "size": more}, RULE, **OPTIONS)
    other = tabulated(frame.assign(sales=frame["sales"] + 1))["size"]
    with pytest.raises(TableError, match="section=A must hold the same in all tables"):
        tc.suppression.protect_tables({**tables, "size": other}, RULE, **OPTIONS)
    renamed = {n: table.assign_attrs(value="wages") for n, table in tables["size"].items()}
    with pytest.raises(TableError, match="must be of the same quantity"):
        tc.suppression.protect_tables({**tables, "size": renamed}, RULE, **OPTIONS)
    off = {names: table.copy(deep=True) for names, table in tables["size"].items()}
    off["size",]["total"][0] -= 1  # of sizes, which the other table has not
    with pytest.raises(TableError, match="of the table 'size': the total of size=large in"):
        tc.suppression.protect_tables({**tables, "size": off}, RULE, **OPTIONS)
    with pytest.raises(ParameterError, match="what read_margins or tabulate_margins give"):
        tc.suppression.protect_tables(list(tables), RULE, **OPTIONS)


def test_safe_is_for_the_tables_that_have_the_variable():
    tables = tabulated(firms(0))
    done = tc.suppression.protect_tables(tables, RULE, safe={"area": "N"}, **OPTIONS)
    assert not done["area"].sensitive["branch", "area"]["sensitive"].sel(area="N").any()
    with pytest.raises(ParameterError, match="safe must name variables"):
        tc.suppression.protect_tables(tables, RULE, safe={"colour": "N"}, **OPTIONS)


def test_each_table_can_be_written(tmp_path):
    done = tc.suppression.protect_tables(tabulated(firms(0)), RULE, **OPTIONS)
    for name, protected in done.items():
        tc.write_release(protected, tmp_path / f"{name}.csv")
        written = pd.read_csv(tmp_path / f"{name}.csv")
        hidden = sum((t["status"] == "suppressed").sum() for t in protected.tables.values())
        assert written["sales"].isna().sum() == hidden
