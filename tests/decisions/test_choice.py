"""Decisions: tiny cases of which all populations and releases are listed, their losses
worked out by hand."""

import pickle
from math import log, sqrt

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import taciturn as tc
from strategies import tables
from taciturn.decisions.choice import decided
from taciturn.decisions.decision import _percent, _probability
from taciturn.decisions.expectations import Expectation, Question
from taciturn.decisions.monte_carlo import Means
from taciturn.errors import ComparisonWarning, ParameterError
from taciturn.risk.outcomes import Dependence, Outcome

DIMS = ["x", "y"]
SAMPLE = xr.DataArray([[2, 0], [0, 2]], dims=DIMS)
# Two populations, of which the second comes three times as often.
DIAGONAL, SPREAD = [[4, 0], [0, 4]], [[2, 2], [2, 2]]
POPULATION = xr.DataArray([[DIAGONAL, SPREAD, SPREAD, SPREAD]], dims=["chain", "draw", *DIMS])
CANDIDATES = {
    "as it is": SAMPLE,
    "one moved": SAMPLE + xr.DataArray([[-1, 1], [0, 0]], dims=DIMS),
    "nothing": xr.zeros_like(SAMPLE),
}
# Of the empty cells only, so that R2 is a fraction: two of four cells are empty in the
# first population, none in the second. (D and E): "as it is" empties the same two,
# (1/2)^(2/2); "one moved" one of them, (1/2)^(2/1); "nothing" all four, (1/2)^(4/2).
EMPTY = (1.0, 0.0, 0.0)
R2_FIRST = {"as it is": 1 / 2, "one moved": 1 / 4, "nothing": 1 / 4}
MAE = {"as it is": 0.0, "one moved": 2 / 4, "nothing": 4 / 4}


def choose(**changed):
    arguments = {"table": SAMPLE, "population": POPULATION, "weights": EMPTY}
    arguments |= {"progressbar": False, **changed}
    return tc.choose_protection(arguments.pop("released", CANDIDATES), **arguments)


def test_expected_losses_by_hand() -> None:
    """With a price of 3 for R2: 3 (1/2) / 4 = 0.375; 3 (1/4) / 4 + 1/2 = 0.6875;
    3 (1/4) / 4 + 1 = 1.1875. In the first population they are 1.5, 1.25 and 1.75, in
    the others 0, 0.5 and 1."""
    found = choose(loss={"R2": 3, "mean_absolute_error": 1})
    np.testing.assert_allclose(found.candidates["expected_loss"], [0.375, 0.6875, 1.1875])
    np.testing.assert_allclose(found.candidates["best"], [3 / 4, 1 / 4, 0])
    assert (found.chosen, found.runner_up) == ("as it is", "one moved")
    assert found.regret == pytest.approx(0.6875 - 0.375)
    assert found.perfect_information == pytest.approx((1.5 - 1.25) / 4)
    # Differences of the two: -0.25 once and 0.5 three times.
    assert found.regret_mcse is not None
    assert found.candidates["feasible"].all()
    for name, risk in R2_FIRST.items():
        expected = 3 * risk / 4 + MAE[name]
        own = found.candidates["expected_loss"].sel(protection=name)
        assert float(own) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("probability", "chosen", "feasible"),
    [(0.75, "as it is", 3), (0.76, "one moved", 2)],
)
def test_the_least_loss_of_those_that_keep_a_constraint(probability, chosen, feasible) -> None:
    constraint = tc.Constraint("R2", at_most=0.25, probability=probability)
    found = choose(loss="mean_absolute_error", constraint=constraint)
    assert found.chosen == chosen
    assert int(found.candidates["feasible"].sum()) == feasible
    np.testing.assert_allclose(found.candidates["kept"], [3 / 4, 1, 1])
    assert found.perfect_information == 0
    assert f"the least of {feasible} candidates, of 3, that keep P(R2 <= 0.25)" in repr(found)


def test_no_candidate_keeps_it() -> None:
    constraint = tc.Constraint("R2", at_most=0.2, probability=0.9)
    found = choose(loss="mean_absolute_error", constraint=constraint)
    assert (found.chosen, found.runner_up, found.regret, found.perfect_information) == (None,) * 4
    assert not found.close
    assert repr(found).startswith("Nothing is chosen: none of 3 candidates keeps P(R2 <= 0.2)")


def test_the_middle_term_by_hand() -> None:
    """Concentration only: 1 - H(X) / log 4 is 1/2 in the first population, with H(X) =
    log 2, and 0 in the others; the release as it is leaves no uncertainty there, an
    empty one all of it."""
    found = choose(loss="R2", weights=(0, 1, 0))
    assert float(found.candidates["expected_loss"].sel(protection="as it is")) == pytest.approx(
        (1 - log(2) / log(4)) / 4
    )
    assert found.chosen == "nothing"
    assert float(found.candidates["expected_loss"].sel(protection="nothing")) == 0


def test_ranks_and_association_by_hand() -> None:
    """Ranks of the sample are 3.5, 1.5, 1.5, 3.5, with one moved 2.5, 2.5, 1, 4: rho =
    (0 + 0 + 1.5 + 1.5) / sqrt(4 * 4.5) = 1 / sqrt 2. Chi-squared is 4 before and, as
    N (ad - bc)^2 / (product of margins), 4 * 4 / (2 * 2 * 1 * 3) = 4/3 after: a change
    of -2/3. Shares of rows are 1, 0 and 0, 1 around 1/2, 1/2 before, BV = 1/2; 1/2, 1/2
    and 0, 1 around 1/4, 3/4 after, BV = 1/8: a change of -3/4.
    """
    costs = {
        "spearman": 1 - 1 / sqrt(2),
        "cramers_v_change": 1 - 1 / sqrt(3),
        "chi_squared_change": 2 / 3,
        "between_variance_change": 3 / 4,
    }
    for name, cost in costs.items():
        found = choose(loss={"R2": 1e-9, name: 3})
        losses = found.candidates["expected_loss"]
        assert float(losses.sel(protection="as it is")) == pytest.approx(0, abs=1e-8)
        assert float(losses.sel(protection="one moved")) == pytest.approx(3 * cost)
        assert found.chosen == "as it is"


def test_a_stronger_association_is_a_loss_too() -> None:
    """[[2, 1], [1, 2]] has chi-squared 6 (4 - 1)^2 / 3^4 = 2/3, and the release
    [[3, 0], [0, 3]] has 6: a change of 8."""
    table = xr.DataArray([[2, 1], [1, 2]], dims=DIMS)
    released = {"as it is": table, "purer": xr.DataArray([[3, 0], [0, 3]], dims=DIMS)}
    given = {"table": table, "released": released, "population": None}
    found = choose(loss={"R2": 1e-9, "chi_squared_change": 1}, **given)
    assert float(found.candidates["expected_loss"].sel(protection="purer")) == pytest.approx(8)
    assert found.chosen == "as it is"
    bound = tc.Constraint("chi_squared_change", at_most=7.9)
    assert choose(loss="R2", constraint=bound, **given).chosen == "as it is"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spearman", "spearman is not defined for this table, which has no order of cells"),
        ("chi_squared_change", "which has no association to lose"),
        ("between_variance_change", "which has no association to lose"),
    ],
)
def test_a_loss_that_is_not_defined_for_the_table(name, message) -> None:
    even = xr.DataArray([[3, 3], [3, 3]], dims=DIMS)
    with pytest.raises(ParameterError, match=message):
        choose(released={"a": SAMPLE}, table=even, population=even, loss={"R2": 1, name: 1})


def test_replicates_are_averaged_and_say_how_sure() -> None:
    """Two replicates with one and with two people moved: MAE 1/2 and 1."""
    moved = xr.concat([CANDIDATES["one moved"], SAMPLE - SAMPLE + 1], "replicate")
    found = choose(
        released={"as it is": SAMPLE, "moved": moved},
        loss={"mean_absolute_error": 1, "R2": 1e-9},
    )
    assert found.regret == pytest.approx(0.75, abs=1e-8)
    assert found.regret_mcse == pytest.approx(0.25, abs=1e-8)
    assert not found.close
    again = choose(
        released={"first": moved, "second": moved.isel(replicate=[1, 0])},
        loss={"mean_absolute_error": 1, "R2": 1e-9},
    )
    assert again.close
    assert "A close call" in repr(again)


def test_a_constraint_in_doubt_is_said() -> None:
    population = xr.concat([POPULATION.isel(draw=[0, 1])] * 30, "draw")
    constraint = tc.Constraint("R2", at_most=0.3, probability=0.5)
    found = choose(loss="mean_absolute_error", constraint=constraint, population=population)
    assert found.doubtful == ("as it is",)
    assert "Whether 'as it is' keeps the constraint" in repr(found)
    sure = tc.Constraint("R2", at_most=0.3, probability=0.9)
    assert choose(loss="mean_absolute_error", constraint=sure, population=population).doubtful == ()


def test_a_constraint_that_is_kept_exactly() -> None:
    """In 19 of 20 draws, whose mean is a little below 0.95 in floating point when it is
    that of means."""
    population = xr.concat([POPULATION.isel(draw=[0]), *[POPULATION.isel(draw=[1])] * 19], "draw")
    for replicates in range(1, 30):
        released = {"as it is": xr.concat([SAMPLE] * replicates, "replicate")}
        constraint = tc.Constraint("R2", at_most=0.3, probability=0.95)
        found = choose(released=released, loss="R2", constraint=constraint, population=population)
        assert found.chosen == "as it is"


def test_the_bar_counts_candidates(capsys) -> None:
    choose(loss="R2", progressbar=True)
    shown = capsys.readouterr()
    assert "candidates" in shown.err
    assert "3/3" in shown.err


def test_a_single_candidate_has_no_runner_up() -> None:
    found = choose(released={"nothing": CANDIDATES["nothing"]}, loss="R2")
    assert (found.chosen, found.runner_up, found.regret) == ("nothing", None, None)
    assert "runner-up" not in repr(found)


@st.composite
def cases(draw):
    shape = st.just(draw(st.sampled_from([(2, 2), (3, 2)])))
    released = {name: draw(tables(shape=shape, draw_dims=("replicate",))) for name in "abc"}
    population = draw(tables(shape=shape, draw_dims=("chain", "draw")))
    return draw(tables(shape=shape)), population, released


@given(case=cases(), price=st.floats(0.01, 100))
def test_the_slow_way(case, price) -> None:
    table, population, released = case
    found = tc.choose_protection(
        released,
        table=table,
        population=population,
        loss={"R2": price, "hellinger": 2},
        progressbar=False,
    )
    losses = {
        name: price * tc.disclosure_risk(population, each)["R2"].mean("replicate")
        + 2 * tc.information_loss(table, each)["hellinger"].mean("replicate")
        for name, each in released.items()
    }
    means = {name: float(each.mean()) for name, each in losses.items()}
    least = xr.concat(losses.values(), "protection").min("protection").mean()
    assert means[found.chosen] == pytest.approx(min(means.values()))
    assert found.perfect_information == pytest.approx(min(means.values()) - float(least), abs=1e-9)
    assert found.perfect_information >= 0
    assert found.regret == pytest.approx(sorted(means.values())[1] - min(means.values()), abs=1e-9)
    assert float(found.candidates["best"].max()) > 0


@pytest.mark.parametrize("bound", [0.1 + 0.2, 1 / 3, 2 / 3, sqrt(2) / 2])
def test_a_bound_that_is_met_exactly_is_kept(bound) -> None:
    """Whatever floating point makes of it; R2 is this much in each of the draws."""
    question = Question({"R2": 1.0}, tc.Constraint("R2", at_most=bound), EMPTY)
    for more, kept in [(0, 1), (1e-16, 1), (1e-9, 0)]:
        terms = {"zero_term": np.full((4, 1), bound + more), "entropy_term": 0, "size_term": 0}
        assert question.answer(Outcome(terms, terms, {}, 1)).kept.mean == kept


@pytest.mark.parametrize(("kept", "of"), [(1, 3), (2, 3), (7, 10), (19, 20)])
def test_a_probability_that_is_met_exactly_is_enough(kept, of) -> None:
    """DIAGONAL has an R2 of 1/2 and SPREAD one of 0."""
    draws = [POPULATION.isel(draw=[1])] * kept + [POPULATION.isel(draw=[0])] * (of - kept)
    population = xr.concat(draws, "draw")

    def feasible(probability):
        constraint = tc.Constraint("R2", at_most=0.3, probability=probability)
        found = choose(
            released={"a": SAMPLE}, loss="R2", constraint=constraint, population=population
        )
        return found.chosen == "a"

    assert feasible(kept / of)
    assert not feasible(kept / of + 1e-9)


def test_a_bound_kept_by_a_few_replicates_is_in_doubt() -> None:
    """All of 10, of 200 and of the only one there is."""
    constraint = tc.Constraint("R2", at_most=0.6)
    for replicates, doubtful in [(10, ("a",)), (200, ()), (1, ())]:
        released = {"a": xr.concat([SAMPLE] * replicates, "replicate")}
        found = choose(
            released=released,
            loss="R2",
            constraint=constraint,
            population=POPULATION.isel(chain=0, draw=0, drop=True),
        )
        assert found.chosen == "a"
        assert found.doubtful == doubtful
        assert (found.candidates["kept_mcse"].item() > 0) == (replicates > 1)


@pytest.mark.parametrize("price", [1e-14, 1.0, 1e14])
def test_the_unit_of_the_prices_decides_nothing(price) -> None:
    """What is the best of each draw, and what is the same but for rounding."""
    found = choose(loss={"R2": 3 * price, "mean_absolute_error": price})
    np.testing.assert_allclose(found.candidates["best"], [3 / 4, 1 / 4, 0])
    pairs = ([0.3, 0.1], [0.1 + 0.2, 0.1])
    losses = [Means.of(np.array([each]).T * price, Dependence()) for each in pairs]
    question = Question({"R2": price}, None, EMPTY)
    for order in ([0, 1], [1, 0]):
        same = {f"{at}": Expectation(losses[at], None, question) for at in order}
        found = decided(same)
        assert found.chosen == str(order[0])
        assert found.candidates["best"].values.tolist() == [1, 1]
        assert found.regret >= 0


def test_draws_from_few_proposals_are_worth_those() -> None:
    """Monte Carlo errors of a decision are those of the summary of the fit: they were
    those of independent draws, less than half of these.
    """
    rng = np.random.default_rng(1)
    zeros = xr.DataArray(rng.random((10, 9)) < 0.3, dims=("a", "b"))
    counts = rng.poisson(np.exp(rng.normal(2, 1.2, (10, 9))))
    population = xr.DataArray(counts, dims=("a", "b")).where(~zeros, 0)
    sample = tc.draw_sample(population, fraction=0.05, random_seed=1)
    known = {"population_size": int(population.sum()), "structural_zeros": zeros}
    quick = {"draws": 1000, "random_seed": 1, "progressbar": False}
    fit = tc.DirichletLogLinear().fit(sample, **known, **quick)
    found = tc.choose_protection(
        {"as it is": sample},
        table=sample,
        population=fit["posterior_predictive"]["population"],
        where=~zeros,
        loss="R2",
        progressbar=False,
    )
    summary = tc.summary(fit)
    assert summary.diagnostics.ess < 2000
    assert found.candidates["mcse"].item() == pytest.approx(summary.table.loc["R2", "mcse"])
    other = tc.ChineseRestaurant().fit(sample, **known, **quick)
    with pytest.warns(ComparisonWarning, match="k-hat"):
        both = tc.fits.stack({"dirichlet": fit, "restaurant": other})
    worth = both["posterior_predictive"]["population"].attrs["independent_draws"]
    assert worth == pytest.approx(tc.summary(both).diagnostics.ess, rel=0.05)


def test_a_decision_can_be_pickled() -> None:
    constraint = tc.Constraint("R2", at_most=0.3)
    found = choose(loss={"R2": 3, "mean_absolute_error": 1}, constraint=constraint)
    again = pickle.loads(pickle.dumps(found))
    assert repr(again) == repr(found)
    assert again.prices == found.prices
    assert again.constraint == constraint
    xr.testing.assert_identical(again.candidates, found.candidates)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hellinger"}, "nothing weighs the risk"),
        (
            {"loss": "hellinger", "constraint": tc.Constraint("new_zeros", at_most=2)},
            "nothing weighs the risk",
        ),
        ({"loss": {}}, "at least one measure"),
        ({"loss": {"R2": 0}}, "loss\\['R2'\\] must be a finite number above 0"),
        ({"loss": {"R1": 1}}, "loss must be one of 'R2', 'hellinger'"),
        ({"loss": ["R2"]}, "loss must be one of"),
        ({"loss": "R2", "constraint": 0.1}, "constraint must be a Constraint"),
        ({"loss": "R2", "released": {}}, "released must be a mapping"),
        ({"loss": "R2", "weights": (1, 1, 1)}, "sum to 1"),
    ],
)
def test_bad_input(change, message) -> None:
    with pytest.raises(ParameterError, match=message):
        choose(**change)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measure": "R1", "at_most": 1}, "measure must be one of 'R2'"),
        ({"measure": "R2", "at_most": -1}, "at_most"),
        ({"measure": "R2", "at_most": 1, "probability": 0}, "probability"),
        ({"measure": "R2", "at_most": 1, "probability": 1.5}, "probability"),
    ],
)
def test_bad_constraints(arguments, message) -> None:
    with pytest.raises(ParameterError, match=message):
        tc.Constraint(**arguments)


def test_losses_are_of_cells_that_can_be_filled():
    """Three of ten, of which the release turns the order round: the mean absolute error
    is 4 / 3 and not 4 / 10."""
    table = xr.DataArray([5, 6, 7] + [0] * 7, dims="c")
    released = xr.DataArray([7, 6, 5] + [0] * 7, dims="c")
    known = {"table": table, "where": table > 0}
    found = tc.risk_utility({"turned": released}, **known).sel(statistic="mean")
    assert found["mean_absolute_error"].item() == pytest.approx(4 / 3)
    assert found["spearman"].item() == -1
    assert found["kept_zeros"].item() == 0
    bound = tc.Constraint("mean_absolute_error", at_most=0.5)
    decided = tc.choose_protection(
        {"turned": released}, loss="R2", constraint=bound, progressbar=False, **known
    )
    assert decided.chosen is None


def test_a_bound_is_printed_on_what_is_bounded():
    assert str(tc.Constraint("spearman", at_most=0.5)) == "P(1 - spearman <= 0.5) >= 0.95"
    said = str(tc.Constraint("cramers_v_change", at_most=0.1))
    assert said == "P(|cramers_v_change| <= 0.1) >= 0.95"


def test_no_close_call_without_draws():
    """Of a known population and two releases that nothing is drawn for."""
    same = {"one": SAMPLE, "two": SAMPLE}
    found = tc.choose_protection(same, table=SAMPLE, loss="R2", progressbar=False)
    assert found.regret == found.regret_mcse == 0
    assert not found.close
    assert "close call" not in repr(found)


def test_of_ties_the_least_certain_is_named():
    moved = xr.concat([CANDIDATES["one moved"]] * 4, "replicate")
    found = choose(
        released={"as it is": SAMPLE, "moved": moved},
        population=None,
        table=POPULATION[0, 0, ...].drop_vars(["chain", "draw"], errors="ignore"),
        loss="hellinger",
        constraint=tc.Constraint("R2", at_most=0.0),
    )
    kept = found.candidates["kept"]
    assert found.chosen is None
    assert (kept == 0).all()
    assert "of 'moved'" in repr(found)
    assert "(Monte Carlo error 0)" not in repr(found)


def test_all_draws_are_all():
    """One draw of 25,000 in which another is better, whose price makes it so."""
    table, other = (xr.DataArray(x, dims="a") for x in ([1, 0, 5, 2], [0, 0, 6, 3]))
    draws = np.tile([4, 3, 8, 5], (25_000, 1))
    draws[0] = [1, 0, 30, 2]
    found = tc.choose_protection(
        {"as it is": table, "other": other},
        table=table,
        population=xr.DataArray(draws[None], dims=["chain", "draw", "a"]),
        loss={"R2": 8.5593, "hellinger": 1},
        progressbar=False,
    )
    assert found.candidates["best"].max() == 1 - 1 / 25_000
    assert "the best in 99.996 % of the draws" in repr(found)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0"), (1e-6, "0.0001"), (0.5, "50"), (1 / 3, "33.33"), (0.9999, "99.99"), (1.0, "100")],
)
def test_a_share_is_0_or_100_per_cent_only_where_it_is(share, text) -> None:
    assert _percent(share) == text


@pytest.mark.parametrize(
    ("share", "asked", "text"),
    [
        (0.9999967, 1.0, "0.999997"),
        (0.0, 0.95, "0"),
        (0.00004, 0.95, "4e-05"),
        (0.9999, 1.0, "0.9999"),
        (0.5, 0.95, "0.5"),
        (0.79995, 0.8, "0.79995"),
        (0.9499999, 0.95, "0.9499999"),
    ],
)
def test_a_probability_is_on_its_side_of_what_is_asked_for(share, asked, text) -> None:
    assert _probability(share, 0.071, asked) == f"{text} (Monte Carlo error 0.071)"


def test_what_is_not_kept_does_not_look_as_if_it_were() -> None:
    """DIAGONAL, with an R2 of 1/2, in 4,001 of 20,000 draws: 0.79995 are below 0.8."""
    draws = np.array([DIAGONAL] * 4001 + [SPREAD] * 15_999)
    found = choose(
        released={"a": SAMPLE},
        population=xr.DataArray(draws[None], dims=["chain", "draw", *DIMS]),
        loss="R2",
        constraint=tc.Constraint("R2", at_most=0.3, probability=0.8),
    )
    assert found.chosen is None
    assert "The bound holds with probability 0.79995 (Monte Carlo error" in repr(found)
    bound = tc.Constraint("R2", at_most=0.12345678, probability=0.9999999)
    assert str(bound) == "P(R2 <= 0.12345678) >= 0.9999999"
    assert str(tc.Constraint("R2", at_most=1, probability=1)) == "P(R2 <= 1) >= 1"
