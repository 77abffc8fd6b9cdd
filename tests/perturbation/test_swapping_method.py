"""What swapping leaves to those who know the method: everything that may be drawn of
tiny microdata, closed forms for two areas, replicates of more."""

from collections import Counter
from math import log

import numpy as np
import pandas as pd
import pytest

import taciturn as tc
from swaps import partners_by_enumeration
from taciturn.errors import ParameterError, TableError
from taciturn.perturbation import swapping_method_conditional_entropy

PEOPLE = pd.DataFrame(
    {
        "area": list("AAABBC"),
        "household": [1, 1, 2, 1, 1, 2],
        "religion": list("xyxxxz"),
    }  # y and z are unique
)


def entropy(mass: dict[object, float]) -> float:
    return -sum(p * log(p) for p in mass.values() if p)


def by_enumeration(people, groups, risky, pairs):
    """`H(X|Y)` of area and religion under the expected joint."""
    areas, religion = people["area"].tolist(), people["religion"].tolist()
    joint: Counter[tuple[tuple[str, str], str]] = Counter()
    for partner, chance in partners_by_enumeration(areas, groups, risky, pairs).items():
        for r, other in enumerate(partner):
            joint[(areas[r], religion[r]), areas[other]] += chance / len(areas)
    after: Counter[tuple[str, str]] = Counter()
    for (before, area), mass in joint.items():
        after[area, before[1]] += mass
    return entropy(joint) - entropy(after)


@pytest.mark.parametrize("pairs", [0, 1, 2, 3])
@pytest.mark.parametrize("match", [[], ["household"]])
@pytest.mark.parametrize("at_risk", [[], ["religion"], ["household", "religion"]])
def test_all_that_may_be_drawn(pairs, match, at_risk):
    counts = PEOPLE.groupby(at_risk)["area"].transform("size") if at_risk else PEOPLE["household"]
    risky = ((counts < 2) if at_risk else counts < 0).tolist()
    groups = PEOPLE["household"].tolist() if match else [0] * 6
    found = swapping_method_conditional_entropy(
        PEOPLE, ["area", "religion"], geography="area", rate=pairs / 3, match=match, at_risk=at_risk
    )
    assert float(found) == pytest.approx(by_enumeration(PEOPLE, groups, risky, pairs), abs=1e-12)


def test_two_areas_have_a_closed_form():
    """100 pairs of 300 and 700: who is in A moves with 1/3, who is in B with 1/7. In
    bits of the binary entropy of who is in A after, 2/3 of whom were there before."""
    people = pd.DataFrame({"area": ["A"] * 300 + ["B"] * 700})
    found = swapping_method_conditional_entropy(
        people, ["area"], geography="area", rate=0.2, base=2
    )

    def binary(p):
        return -p * np.log2(p) - (1 - p) * np.log2(1 - p)

    assert float(found) == pytest.approx(0.3 * binary(1 / 3) + 0.7 * binary(1 / 7), abs=1e-12)


def test_replicates_agree():
    """The averaged joint of 4,000 swaps of 40 records in four areas, within 1%: it is
    too low by about the number of pairs of cells over twice the number of moves."""
    rng = np.random.default_rng(3)
    people = pd.DataFrame({"area": rng.choice(list("ABCD"), 40), "x": rng.choice(list("uvw"), 40)})
    options = {"geography": "area", "rate": 0.4, "match": [], "at_risk": ["area", "x"]}
    exact = float(swapping_method_conditional_entropy(people, ["x", "area"], minimum=3, **options))
    swaps = tc.swap_records(people, minimum=3, replicates=4000, random_seed=1, **options)
    averaged = tc.perturbation.swapping_conditional_entropy(
        people, swaps, ["x", "area"], averaged=True
    )
    assert float(averaged) == pytest.approx(exact, rel=0.01)


def test_it_gives_the_risk_for_those_who_know_the_method():
    options = {"geography": "area", "rate": 1 / 3}
    exact = swapping_method_conditional_entropy(PEOPLE, ["area", "religion"], **options)
    swaps = tc.swap_records(PEOPLE, random_seed=1, **options)
    after = tc.perturbation.swapped_table(PEOPLE, swaps, ["area", "religion"])
    table = tc.tabulate(PEOPLE, ["area", "religion"])
    assert tc.disclosure_risk(table, after, conditional_entropy=exact)["R2"].sizes == {
        "replicate": 1
    }


def test_what_is_refused():
    with pytest.raises(ParameterError, match="variables must include the geography 'area'"):
        swapping_method_conditional_entropy(PEOPLE, ["religion"], geography="area", rate=0.5)
    for twice in (["area", "religion", "religion"], ["area", "religion", "area"]):
        with pytest.raises(TableError, match="a variable stands twice in"):
            swapping_method_conditional_entropy(PEOPLE, twice, geography="area", rate=0.5)
    many = pd.DataFrame({"area": np.repeat(list("ABCDEFGH"), 40)})
    with pytest.raises(ParameterError, match="more than 500,000 steps for 8 kinds"):
        swapping_method_conditional_entropy(many, ["area"], geography="area", rate=0.5)
