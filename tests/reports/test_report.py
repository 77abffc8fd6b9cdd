"""The page of a panel: what it says is what the functions give, and what it must not
say it does not."""

import re
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from itertools import product

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.reports.contents import CategoryRisk, gathered
from taciturn.reports.texts import _categories, _probability, _risk
from taciturn.reports.yardstick import between, yardstick

SILENT = {"progressbar": False}
VOID = {"meta", "br"}


class Page(HTMLParser):
    """The text of each element and the rows of tables; fails where tags do not nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html, self.open, self.rows, self.text, self.links = html, [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    def row(self, first: str) -> list[str]:
        (found,) = [row[1:] for row in self.rows if row and row[0] == first]
        return found

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.text).split())

    @property
    def verdict(self) -> str:
        (found,) = re.findall(r'<p class="verdict[^>]*>(.*?)</p>', self.html)
        return unescape(found)


@pytest.fixture
def page(tmp_path):
    """Writes a report and reads it."""

    def page(fit, name="panel.html", **given) -> Page:
        tc.report(fit, tmp_path / name, **given, **SILENT)
        assert [path.name for path in tmp_path.iterdir()] == [name]
        return Page((tmp_path / name).read_text(encoding="utf-8"))

    return page


def test_the_numbers_are_those_of_the_functions(page, fit_pool, religion_sample):
    read = page(fit_pool, threshold=0.15)
    found = tc.summary(tc.assess(fit_pool), threshold=0.15)
    r2 = found.table.loc["R2"]
    assert read.row("R2")[:5] == [f"{value:.4f}" for value in r2.iloc[:5]]
    assert read.verdict.startswith(
        f"Under this model, releasing the sample table carries a risk of R2 = {r2['mean']:.2f}"
    )
    assert f"above 0.15 with probability {found.exceedance:.2f}." in read.verdict
    by = tc.assess(fit_pool, by="religion")["risk_by_religion"].to_dataset()["R2"]
    ends = by.quantile([0.025, 0.5, 0.975], ("chain", "draw")).sel(religion="9").values
    row = [*(f"{value:.4f}" for value in ends), f"{float(by['empty'].sel(religion='9')):.3f}"]
    assert row in [row[1:] for row in read.rows if row[0] == "9"]
    population = fit_pool["posterior_predictive"]["population"]
    cells = tc.risk.cell_uniques(population, religion_sample)
    listed = [row for row in read.rows if row[0].startswith("area=") and len(row) == 3]
    assert len(listed) == int((religion_sample == 1).sum())
    shown = [float(row[1]) for row in listed]
    assert shown == sorted(shown, reverse=True)
    for label, unique, match in listed:
        at = dict(part.split("=") for part in label.split(", "))
        assert int(religion_sample.sel(at)) == 1
        assert unique == f"{float(cells['p_unique'].sel(at)):.2f}"
        assert match == f"{float(cells['p_match'].sel(at)):.2f}"
    checks = tc.fits.predictive_checks(fit_pool).sel(statistic="uniques", member="all")
    assert read.row("uniques")[0] == str(int(checks["observed"]))
    assert repr(tc.LinearPool()) in read.html
    assert "random_seed=1" in read.html


def test_releases_are_compared_and_attacked(page, fit_pool, religion_sample):
    small = (religion_sample > 0) & (religion_sample < 2)
    rounded = tc.random_round(religion_sample, rounding_base=3, replicates=20, random_seed=1)
    pattern = tc.suppress(religion_sample, small, progressbar=False)
    alone = tc.Suppression(religion_sample, small)
    read = page(
        fit_pool,
        releases={"rounded": rounded, "suppressed": pattern, "small ones only": alone},
    )
    found = tc.risk_utility(
        {"rounded": rounded},
        table=religion_sample,
        population=fit_pool["posterior_predictive"]["population"],
    ).isel(protection=0)
    numbers = [*found["R2"].values, found["hellinger"][0], found["mean_absolute_error"][0]]
    assert read.row("rounded") == [f"{float(value):.4f}" for value in numbers]
    assert read.row("the sample as it is")[0] == read.row("R2")[0]
    bounds = tc.attacker_bounds(alone, progressbar=False)
    hidden = ~bounds["published"]
    worked_out = int((bounds["disclosed"] & hidden).sum())
    assert worked_out > 0
    told = f"{worked_out} of the {int(hidden.sum())} unpublished cells of small ones only"
    assert told in read.verdict
    assert "of suppressed can be worked out" not in read.verdict
    place = tuple(int(i) for i in np.argwhere((bounds["disclosed"] & hidden).values)[0])
    area, religion = (bounds[dim].values[i] for dim, i in zip(bounds.dims, place, strict=False))
    rows = [row for row in read.rows if row[0] == f"area={area}, religion={religion}"]
    assert ["1", "1", "1"] in [row[1:] for row in rows]


def test_the_public_page_has_nothing_of_single_cells(page, fit_pool, religion_sample):
    small = (religion_sample > 0) & (religion_sample < 2)
    given = {
        "releases": {
            "rounded": tc.random_round(religion_sample, replicates=20, random_seed=1),
            "suppressed": tc.suppress(religion_sample, small, progressbar=False),
        },
        "threshold": 0.2,
        "public": True,
    }
    read = page(fit_pool, **given)
    assert "area=" not in read.html
    assert not re.search(r"\d\.\d{3,}", read.said)
    uniques = int((religion_sample == 1).sum())
    assert f"{uniques} cells" not in read.said
    assert "one person in the sample" not in read.said
    assert "random_seed" not in read.html
    assert "Hellinger" not in read.said
    assert not {"uniques", "Sampler", "Model checks", "Prior"} & {row[0] for row in read.rows}
    assert "Not for release" not in read.said
    assert read.row("Released") == ["rounded: perturbed, any count may be another one"]
    leaky = tc.Suppression(religion_sample, small)
    with pytest.raises(tc.TaciturnError, match="which a public page must not say"):
        tc.report(fit_pool, "p.html", releases={"x": leaky}, public=True, **SILENT)


def test_the_public_page_of_a_table_says_of_each_check_whether_it_is_inside(page, fit_pool):
    assert page(fit_pool, public=True).row("uniques") == ["inside the 95 % interval"]


def test_a_fit_that_failed_says_so_first(page, fit_as_chain):
    stuck = fit_as_chain.copy(deep=True)
    stuck["posterior"]["theta"][0] += 1e4
    read = page(stuck, public=True)
    assert read.verdict.startswith("Do not rely on these numbers: the sampler did not")
    assert read.row("Sampler") == ["did not converge"]
    wrong = fit_as_chain.copy()
    samples = wrong["posterior_predictive"]["count"]
    wrong["posterior_predictive"] = wrong["posterior_predictive"].copy()
    wrong["posterior_predictive"]["count"] = samples.where(samples != 1, 0)
    read = page(wrong, overwrite=True)
    assert read.verdict.startswith("Do not rely on these numbers: the fitted model does not")
    assert "DOES NOT LOOK" in read.row("Model checks")[0]


def test_what_can_be_worked_out_is_said_of_a_fit_that_failed(page, fit_as_chain, religion_sample):
    stuck = fit_as_chain.copy(deep=True)
    stuck["posterior"]["theta"][0] += 1e4
    small = (religion_sample > 0) & (religion_sample < 3)
    read = page(stuck, releases={"by hand": tc.Suppression(religion_sample, small)})
    assert read.verdict.startswith("Do not rely on these numbers: the sampler did not")
    assert re.search(r"unpublished cells of by hand can be worked out: it must not", read.verdict)
    assert "carries a risk" not in read.verdict


def test_a_public_page_of_a_failed_check_gives_no_count(page, fit_as_chain):
    wrong = fit_as_chain.copy()
    samples = wrong["posterior_predictive"]["count"]
    wrong["posterior_predictive"] = wrong["posterior_predictive"].copy()
    wrong["posterior_predictive"]["count"] = samples.where(samples != 1, 0)
    read = page(wrong, public=True)
    assert read.verdict == (
        "Do not rely on these numbers: the fitted model does not give samples like this one."
    )
    assert "in the sample," not in read.said


HOSTILE = "<img src=x onerror=alert(1)>"


def test_labels_are_text_wherever_they_stand(page):
    labels = [HOSTILE, "$x$", "&amp;"]
    sample = xr.DataArray(
        [[3, 1, 0], [2, 4, 1]],
        dims=(HOSTILE, "b"),
        coords={HOSTILE: ["{{ 7 * 7 }}", "</style>"], "b": labels},
    )
    fit = tc.LogLinear().fit(sample, population_size=40, draws=60, random_seed=1)
    release = tc.Suppression(sample, sample == 1)
    read = page(fit, releases={HOSTILE: release}, title=HOSTILE)
    assert "<img" not in read.html
    assert HOSTILE in read.said
    assert "{{ 7 * 7 }}" in read.said
    assert "$x$" in read.said


@pytest.fixture(scope="module")
def plain(fit_loglinear, tmp_path_factory) -> Page:
    """The page of a plug-in estimator, without releases."""
    path = tmp_path_factory.mktemp("page") / "panel.html"
    tc.report(fit_loglinear, path, **SILENT)
    return Page(path.read_text(encoding="utf-8"))


def test_the_page_stands_alone(page, plain, fit_loglinear):
    assert all(link.startswith("#") for link in plain.links)
    assert "default-src 'none'" in plain.html
    assert set(re.findall(r"https?://[^\"\s<]+", plain.html)) <= {
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/2000/svg",
    }
    ids = re.findall(r' id="([^"]+)"', plain.html)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', plain.html))
    assert used <= set(ids)
    again = page(fit_loglinear)
    assert again.html == plain.html


@pytest.mark.parametrize("public", [False, True])
def test_one_variable_structural_zeros_and_no_samples_of_the_model(page, public):
    sample = xr.DataArray([5, 0, 1, 2], coords={"a": list("wxyz")}, dims="a")
    zeros = sample.copy(data=[False, True, False, False])
    fit = tc.LogLinear().fit(
        sample, population_size=40, structural_zeros=zeros, draws=60, random_seed=1
    )
    del fit["posterior_predictive"]["count"]
    read = page(fit, public=public, title="One variable")
    assert "One variable" in read.said
    assert "3 cells, 1 structural zeros" in read.row("Table")[0]
    assert "none: the fit holds no samples" in read.row("Model checks")[0]
    assert "Where the risk is" not in read.said


def test_a_category_with_one_cell_is_not_a_table_of_its_own(page):
    """Its risk would be that of a cell."""
    sample = xr.DataArray([[5], [1], [2]], dims=("a", "b"), coords={"a": list("xyz"), "b": ["u"]})
    fit = tc.LogLinear().fit(sample, population_size=40, draws=60, random_seed=1)
    assert re.findall(r"<h3>(\w+)</h3>", page(fit).html)[:1] == ["b"]


TABLE = xr.DataArray([3, 1], dims="z")
OTHER = tc.Suppression(TABLE, TABLE > 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path": "panel.pdf"}, "panel.pdf: cannot be written with the ending '.pdf'"),
        ({"threshold": 2}, "threshold must be"),
        ({"title": " "}, "title must be text"),
        ({"releases": []}, "releases must map names to releases, got list"),
        ({"releases": {"": None}}, "a name of its own"),
        ({"releases": {"as it is": None}}, "a name of its own"),
        ({"releases": {"x": 3}}, "must be a perturbed table, a SuppressionPattern or a Release"),
        ({"releases": {"x": OTHER}}, "is a release of another table"),
    ],
)
def test_what_is_refused(fit_loglinear, tmp_path, change, message):
    given = {"path": "panel.html", **change}
    path = tmp_path / given.pop("path")
    with pytest.raises(tc.TaciturnError, match=re.escape(message)):
        tc.report(fit_loglinear, path, **given, **SILENT)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_only_when_told_to(fit_loglinear, tmp_path):
    (tmp_path / "panel.html").write_text("old")
    with pytest.raises(tc.TaciturnError, match="exists already"):
        tc.report(fit_loglinear, tmp_path / "panel.html", **SILENT)
    assert (tmp_path / "panel.html").read_text() == "old"


def test_marks_are_risks_of_packaged_tables():
    marks = {mark.name: mark.risk for mark in yardstick((0.1, 0.8, 0.1))}
    census = tc.load_dataset("area_by_religion")
    assert marks["area × religion, everybody"] == float(tc.disclosure_risk(census)["R1"])
    assert marks["area × religion, everybody, rounded to 10"] < marks["area × religion, everybody"]
    assert 0 < marks["area × sex, everybody"] < 0.02
    said = between(0.2, yardstick((0.1, 0.8, 0.1)))
    assert said.startswith("R2 of this table is 0.20: about that of area × religion, everybody,")
    assert "above" not in between(0.0, yardstick((0.1, 0.8, 0.1)))
    assert "below" not in between(0.99, yardstick((0.1, 0.8, 0.1)))


def test_the_public_page_is_no_fingerprint(page, fit_pool, religion_sample):
    """No number is there, or drawn, that is more exact than what is printed."""
    read = page(fit_pool, public=True)
    assert "k-hat" not in read.said
    assert "tau1" not in read.said
    assert "The numbers" not in read.said
    marks = [float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)"', read.html)]
    assert marks
    internal = page(fit_pool, overwrite=True)
    drawn = set(re.findall(r'<use [^>]*x="([\d.]+)"', internal.html))
    shared = drawn & {f"{mark:.6f}" for mark in marks}
    assert len(drawn - shared) > 20  # medians of categories, at least


def test_a_plug_in_says_what_its_interval_leaves_out(plain):
    assert tc.LogLinear.caution in plain.verdict


def test_only_cells_that_are_not_published_are_listed(page, fit_loglinear, religion_sample):
    """Without totals nothing limits them."""
    release = tc.Suppression(religion_sample, religion_sample == 1, totals=False)
    read = page(fit_loglinear, releases={"by hand": release})
    assert "nan" not in read.said
    rows = [row for row in read.rows if len(row) == 4 and row[3] == "∞"]
    assert len(rows) == min(10, int((religion_sample == 1).sum()))
    for label, least, most, _ in rows:
        at = dict(part.split("=") for part in label.split(", "))
        assert (int(religion_sample.sel(at)), least, most) == (1, "0", "∞")


@pytest.mark.parametrize("name", ["the population", "the table itself"])
def test_a_table_that_is_no_release_is_refused(fit_loglinear, religion, tmp_path, name):
    table = religion if name == "the population" else religion // 10
    with pytest.raises(tc.TaciturnError, match="must be what a protection method returned"):
        tc.report(fit_loglinear, tmp_path / "p.html", releases={name: table}, **SILENT)
    rounded = tc.random_round(religion, rounding_base=3)
    with pytest.raises(tc.TaciturnError, match="people, the sample of the fit 245: it is a rel"):
        tc.report(fit_loglinear, tmp_path / "p.html", releases={name: rounded}, **SILENT)


@pytest.mark.parametrize("population_size", [55, 550])
def test_a_public_page_does_not_tell_tables_with_the_same_release_apart(page, population_size):
    """Five tables agree with a suppressed one. R2 in two decimals, and that of
    categories, were of one of them only.
    """
    values = [[3, 1, 9], [2, 4, 9], [7, 8, 12]]
    table = xr.DataArray(values, dims=("a", "b"), coords={"a": list("xyz"), "b": list("pqr")})
    hidden = xr.zeros_like(table, dtype=bool)
    hidden[:2, :2] = True
    pages = set()
    for k in range(5):
        candidate = table.copy()
        candidate[:2, :2] = [[k, 4 - k], [5 - k, 1 + k]]
        fit = tc.PolyaUrn(theta=5.0).fit(candidate, population_size=population_size, random_seed=1)
        given = {"releases": {"s": tc.Suppression(candidate, hidden)}, "threshold": 0.2}
        pages.add(page(fit, public=True, overwrite=True, **given).html)
    assert len(pages) == 1
    assert "The risk of the table is left out" in pages.pop()


@pytest.mark.parametrize("model", [tc.MixedPoisson(), tc.DirichletLogLinear(), tc.LogLinear()])
def test_what_a_fit_is_like_does_not_tell_tables_with_the_same_release_apart(page, model):
    """How priors and checks do, and whether draws are many, depends on the counts."""
    hidden = xr.DataArray([[True, True], [True, True]], dims=("a", "b"))
    pages, priors = set(), set()
    for counts in ([[0, 3], [2, 7]], [[1, 2], [1, 8]], [[2, 1], [0, 9]]):
        table = xr.DataArray(counts, dims=("a", "b"))
        fit = model.fit(table, population_size=1108, draws=200, chains=1, random_seed=1)
        given = {"releases": {"s": tc.Suppression(table, hidden)}, "threshold": 0.2}
        pages.add(page(fit, public=True, overwrite=True, **given).html)
        priors.add(page(fit, overwrite=True).row("Prior")[0])
    assert len(pages) == 1
    assert len(priors) > 1 or isinstance(model, tc.LogLinear)


def test_a_pattern_leaves_what_is_left_with_the_tables_it_was_made_with(page):
    """Of one table alone six values are left, of both three (an integer program over
    all variables); the public page is of what its release tells.
    """
    of_b = [[9, 8], [3, 1], [6, 6], [6, 4]]
    of_z = [[7, 5, 5], [2, 2, 0], [2, 2, 8], [5, 1, 4]]
    tables = {"b": xr.DataArray(of_b, dims=("a", "b")), "z": xr.DataArray(of_z, dims=("a", "z"))}
    small = {name: (table > 0) & (table < 3) for name, table in tables.items()}
    made = tc.suppression.suppress_tables(tables, small, random_seed=1, progressbar=False)
    fit = tc.PolyaUrn(theta=5.0).fit(tables["b"], population_size=500, random_seed=1)
    for public, left in ((False, 3), (True, 6)):
        read = page(fit, public=public, overwrite=True, releases={"s": made["b"]})
        assert f"at least {left} values" in read.html
        assert "who has another table of these people as well may work out more" in read.html
    several = page(fit, overwrite=True, releases={"s": made["b"], "t": made["b"]})
    assert "as well, or two of these, may work out more" in several.html


def test_a_public_page_does_not_use_the_ranges_a_pattern_was_made_for(page):
    """They are of the true values: with those of 5 and of 6 other numbers of values
    were left.
    """
    said = set()
    for k in (5, 6, 7):
        values = [[k, 20 - k, 9], [20 - k, k, 9], [7, 8, 12]]
        table = xr.DataArray(values, dims=("a", "b"))
        hidden = xr.zeros_like(table, dtype=bool)
        hidden[:2, :2] = True
        knowledge = xr.Dataset({"lower": np.floor(table * 0.5), "upper": np.ceil(table * 1.5)})
        pattern = tc.suppress(table, hidden, knowledge=knowledge, progressbar=False)
        fit = tc.PolyaUrn(theta=5.0).fit(table, population_size=500, random_seed=1)
        read = page(fit, public=True, overwrite=True, releases={"s": pattern})
        internal = page(fit, overwrite=True, releases={"s": pattern})
        said.add((read.html, re.search(r"at least \d+ values", internal.html)[0]))
    assert len({html for html, _ in said}) == 1
    assert "at least 21 values" in read.html
    assert len(said) > 1


@pytest.mark.parametrize(
    ("values", "released"),
    [
        (  # rounded to 3: of the first nothing is changed
            [[[0, 3], [6, 3]], [[1, 2], [7, 4]], [[1, 4], [5, 2]]],
            lambda table: table.copy(data=[[0, 3], [6, 3]]).assign_coords(replicate=0),
        ),
        (
            [[[0, 1], [6, 2]], [[0, 2], [6, 1]], [[0, 2], [6, 2]]],
            lambda table: tc.perturbation.suppress_small_cells(table, minimum=3)[..., ::-1],
        ),
    ],
    ids=["rounded", "small counts suppressed"],
)
def test_tables_with_the_same_perturbed_release_have_one_public_page(page, values, released):
    """n, R1 and R2 told them apart."""
    pages = set()
    for counts in values:
        table = xr.DataArray(counts, dims=("a", "b"), coords={"a": list("xy"), "b": list("pq")})
        fit = tc.PolyaUrn(theta=5.0).fit(table, population_size=300, random_seed=1)
        given = {"releases": {"p": released(table)}, "threshold": 0.2}
        read = page(fit, public=True, overwrite=True, **given)
        pages.add(read.html)
    assert len(pages) == 1
    assert "their number is left out" in read.row("Sample")[0]
    assert "The risk of the table is left out" in read.verdict


def test_cells_that_no_released_table_has_are_attacked(page):
    """Two-way tables of a three-way one, with four of their cells suppressed: inner
    cells can be worked out, and more of them than of what is released.
    """
    values = [[[1, 9], [8, 0], [0, 4]], [[5, 10], [11, 0], [0, 0]], [[3, 0], [8, 0], [0, 5]]]
    sample = xr.DataArray(np.array(values), dims=("a", "b", "c"))
    hidden = xr.zeros_like(sample.sum("c"), dtype=bool)
    hidden[1:, 1:] = True
    margins = [("a", "b"), ("a", "c"), ("b", "c")]
    release = tc.LinkedTables(sample, margins, suppressed={("a", "b"): hidden})
    inner = tc.attacker_bounds(release, **SILENT)
    assert bool((inner["disclosed"] & (inner["lower"] == sample)).sum() == inner["disclosed"].sum())
    assert bool(inner["disclosed"][0, 0, 0])  # somebody alone
    fit = tc.LogLinear().fit(sample, population_size=400, draws=60, random_seed=1)
    read = page(fit, releases={"linked": release})
    disclosed = int(inner["disclosed"].sum())
    assert f"22 cells are not published as they are; {disclosed} of them" in read.said
    assert "12 more are not shown" in read.said
    with pytest.raises(tc.TaciturnError, match=f"{disclosed} of 22 unpublished cells"):
        page(fit, releases={"linked": release}, public=True, overwrite=True)


def test_a_release_without_a_variable_of_the_table_says_what_it_leaves_out(page):
    """A published zero is one of all cells in it, which this release does not have."""
    sample = xr.DataArray([[0, 0], [1, 1], [0, 2], [4, 5]], dims=("a", "b"))
    over_a = sample.sum("b")
    release = tc.Suppression(over_a, (over_a > 0) & (over_a < 9))
    fit = tc.LogLinear().fit(sample, population_size=400, draws=60, random_seed=1)
    said = "by a has no b: cells of the table, which are by that too, were not looked at."
    read = page(fit, releases={"by a": release})
    assert read.said.count(said) == 2  # in the verdict, too
    assert said in read.verdict
    with pytest.raises(tc.TaciturnError, match=r"'by a' has no 'b'.*give LinkedTables of"):
        page(fit, releases={"by a": release}, public=True, overwrite=True)
    linked = tc.LinkedTables(sample, [("a",)], suppressed={("a",): release.suppressed})
    assert "not looked at" not in page(fit, releases={"by a": linked}, overwrite=True).said


@pytest.mark.parametrize("population_size", [300, 29])
@pytest.mark.parametrize(
    "margins", [[], [("sex",)], [()]], ids=["cells alone", "a margin", "the grand total"]
)
def test_the_public_page_is_no_further_total(page, margins, population_size):
    """A suppressed count would be n less the others, or so would be the sum of two."""
    sample = xr.DataArray([[9, 1], [7, 12]], dims=("area", "sex"), name="count")
    fit = tc.LogLinear().fit(sample, population_size=population_size, draws=60, random_seed=1)
    release = tc.Suppression(sample, (sample < 3) | (sample == 12), totals=margins)
    whole = page(fit, releases={"x": release})
    assert whole.row("Sample")[0].startswith(f"29 of {population_size} people, a fraction of")
    read = page(fit, releases={"x": release}, public=True, overwrite=True)
    assert ("29" in read.row("Sample")[0]) == bool(margins)
    assert ("their number is left out" in read.row("Sample")[0]) != bool(margins)


def test_a_pattern_that_is_not_proved_to_protect_is_not_for_release(
    page, fit_loglinear, religion_sample
):
    """However many values remain as far as the page attacks it."""
    small = religion_sample == 1
    pattern = tc.suppress(religion_sample, small, random_seed=1, progressbar=False)
    number = int(small.sum())
    for unproved, said in (
        ({religion_sample.dims: small}, f"{number} of {number} primary cells are not proved"),
        (
            {},
            f"{number} primary cells of tables that were protected together with this one are not",
        ),
    ):
        doubtful = replace(pattern, unproved=unproved, unproved_in_all=number)
        shown = page(fit_loglinear, releases={"pattern": doubtful}, overwrite=True)
        assert shown.said.count(f"must not be released: {said}") == 2  # in the verdict, too
        with pytest.raises(tc.TaciturnError, match=f"'pattern' must not be released: {said}"):
            page(fit_loglinear, releases={"pattern": doubtful}, public=True, overwrite=True)
    assert (
        "must not be released"
        not in page(fit_loglinear, releases={"pattern": pattern}, overwrite=True).said
    )


def test_totals_that_are_rounded_are_attacked(page):
    """No cell can be worked out, but both rows: of all tables of people that are
    rounded like this one the totals are 1.
    """
    sample = xr.DataArray([[1, 0, 0], [0, 1, 0]], dims=("a", "b"))
    totals = [sample.sum("b"), sample.sum("a"), sample.sum()]
    near = lambda counts: (counts + 1) // 3 * 3  # noqa: E731
    release = tc.Rounding(near(sample), 3, totals=[near(total) for total in totals])
    alike = [
        cells
        for cells in (np.reshape(each, (2, 3)) for each in product(range(3), repeat=6))
        if not near(cells).any()
        and not near(cells.sum(axis=0)).any()
        and not near(cells.sum(axis=1)).any()
        and near(cells.sum()) == 3
    ]
    assert {tuple(cells.sum(axis=1).tolist()) for cells in alike} == {(1, 1)}
    assert {cells.min() for cells in np.transpose(alike, (1, 2, 0)).reshape(6, -1)} == {0}
    fit = tc.LogLinear().fit(sample, population_size=20, draws=60, random_seed=1)
    with pytest.raises(tc.TaciturnError, match="3 of 12 unpublished cells"):
        page(fit, releases={"rounded": release}, public=True)


def test_a_public_page_has_no_number_that_the_sample_gave_the_model(page, religion_sample):
    """Neither shares of a mixture nor what weights are worth."""
    settings = {"population_size": 2449, "draws": 400, "random_seed": 1, "progressbar": False}
    urn = tc.ChineseRestaurant().fit(religion_sample, **settings)
    stack = tc.fits.stack(
        {"urn": urn, "log-linear": tc.DirichletLogLinear().fit(religion_sample, **settings)}
    )
    pages = [page(stack, public=public, overwrite=True) for public in (False, True)]
    model, told = ("".join(each.row("Model")) for each in pages)
    shares = re.findall(r"[01]\.\d{3}", model)
    assert len(shares) == 2
    assert not any(share in pages[1].html for share in shares)
    assert "log-linear: DirichletLogLinear()" in told
    weights = 10.0 * religion_sample
    fit = tc.MixedPoisson().fit(
        religion_sample, sampling_weights=weights, effective_size=123.456, **settings
    )
    for public in (False, True):
        said = page(fit, public=public, overwrite=True).said
        assert ("123.5" in said) is not public
        assert ("says less than as many people" in said) is public


def test_labels_in_pictures_stay_as_they_are(page):
    """Even colours and references, which are changed around them; long ones are cut."""
    labels = ["#000000", "#010203", 'url(#a) id="b"', "x" * 500]
    sample = xr.DataArray([[3, 1, 2, 2], [2, 4, 1, 5]], dims=("b", "a"), coords={"a": labels})
    fit = tc.LogLinear().fit(sample, population_size=40, draws=60, random_seed=1)
    read = page(fit)
    for label in labels[:3]:
        assert f">{escape(label, quote=False)}</text>" in read.html
    assert "x" * 200 not in "".join(re.findall("<text.*?</text>", read.html, re.S))


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "below 0.01"),
        (0.001, "below 0.01"),
        (0.01, "0.01"),
        (0.997, "above 0.99"),
        (1.0, "above 0.99"),
    ],
)
def test_a_probability_is_certain_only_where_it_is(share, text) -> None:
    """None of some draws is not never, unless everybody was sampled."""
    assert _probability(share, sure=False) == text
    assert _probability(share, sure=True) == f"{share:.2f}"


@pytest.mark.parametrize(("population_size", "text"), [(400, "below 0.01"), (245, "0.00")])
def test_no_draw_above_the_threshold(page, population_size, text) -> None:
    sample = tc.draw_sample(tc.load_dataset("area_by_religion"), size=245, random_seed=1)
    fit = tc.LinearPool().fit(sample, population_size=population_size, random_seed=1)
    assert f"It is above 0.9 with probability {text}." in page(fit, threshold=0.9).html


def test_nobody_knows_how_the_draws_of_another_package_were_made(page) -> None:
    fit = tc.LogLinear().fit(
        tc.draw_sample(tc.load_dataset("area_by_religion"), size=245, random_seed=1),
        population_size=2449,
        draws=500,
        random_seed=1,
    )
    del fit.attrs["estimator"]
    assert "whether the draws can be relied on is not known here" in page(fit).html


def test_categories_that_are_shortened_alike_are_told_apart(page):
    """By their place in the table, in whichever order they are drawn."""
    labels = [f"Borough of Greater {side} Riding, upper valley" for side in ("North", "South")]
    sample = xr.DataArray([[5, 4, 5], [2, 0, 12]], dims=("a", "b"), coords={"a": labels})
    fit = tc.LogLinear().fit(sample, population_size=40, draws=60, random_seed=1)
    read = page(fit)
    drawn = re.findall("<text[^>]*>(Borough.*?)</text>", read.html)
    order = [labels.index(row[0]) for row in read.rows if row[0] in labels]
    assert order == [1, 0]  # the riskiest first
    assert drawn == [f"Borough of Greater…pper valley ({at + 1})" for at in order]


def test_figures_of_the_verdict_stay_on_their_side_of_the_threshold(page, fit_loglinear):
    """Whatever it is: all that the page says of the risk, as numbers or in words."""
    r2 = tc.summary(tc.assess(fit_loglinear)).table.loc["R2"]
    exact = [r2["mean"], r2["2.5%"], r2["97.5%"]]
    pattern = r"R2 = (.*) on a scale.*between (.*) and (.*?)\.(?: .*)? It is above (\S+) with"
    for threshold in {round(value, 2) for value in exact}:
        for public in (False, True):
            read = page(fit_loglinear, threshold=threshold, public=public, overwrite=True)
            *shown, given = re.search(pattern, read.verdict).groups()
            assert given == str(threshold)
            crossed = 0
            for text, value in zip(shown, exact, strict=True):
                if round(value, 2) != threshold:
                    assert text == f"{value:.2f}"
                    continue
                crossed += 1
                side = "above" if value > threshold else "below"
                if public:
                    assert text == f"just {side} {given}"
                else:
                    assert abs(float(text) - value) <= 0.005
                    assert (float(text) > threshold) == (value > threshold)
                    assert float(text) != threshold
            assert crossed


@pytest.mark.parametrize(
    ("value", "threshold", "text", "public"),
    [
        (0.24098, None, "0.24", "0.24"),
        (0.24098, 0.24, "0.241", "just above 0.24"),
        (0.24, 0.24, "0.24", "0.24"),
        (0.2379, 0.2384, "0.238", "just below 0.2384"),
        (0.2349, 0.2384, "0.23", "0.23"),
        (0.9996, 1.0, "0.9996", "just below 1"),
    ],
)
def test_a_risk_beside_a_threshold(value, threshold, text, public):
    """In no more than two decimals for the public."""
    assert _risk(value, threshold, public=False) == text
    assert _risk(value, threshold, public=True) == public


def test_the_threshold_is_printed_as_it_is_given(page, fit_loglinear):
    read = page(fit_loglinear, threshold=0.23000004)
    assert "It is above 0.23000004 with probability" in read.verdict


def test_a_category_is_empty_in_all_draws_or_in_none_only_if_it_is(fit_loglinear):
    contents = gathered(fit_loglinear, None, threshold=None, progressbar=False)
    empty = np.array([0, 1, 2000, 3999, 4000]) / 4000
    category = CategoryRisk("a", list("vwxyz"), np.full((5, 3), 0.1), empty)
    (own,) = _categories(replace(contents, categories=[category]))
    assert [row[-1] for _, row in own["rows"]] == ["0.000", "0.0003", "0.500", "0.9998", "1.000"]


def test_only_the_table_itself_has_a_distance_of_0(page):
    """As the page says: here one of many people moved."""
    sample = xr.DataArray([[4 * 10**9, 3], [2, 5 * 10**9]], dims=("a", "b"))
    fit = tc.LogLinear().fit(sample, population_size=10**10, draws=60, random_seed=1)
    moved = (sample + xr.DataArray([[1, 0], [0, -1]], dims=("a", "b"))).assign_coords(replicate=0)
    read = page(fit, releases={"moved": moved})
    distance = float(np.sqrt(((np.sqrt(moved) - np.sqrt(sample)) ** 2).sum() / 2))
    shown, error = read.row("moved")[3:]
    assert 0 < float(shown) == pytest.approx(distance, abs=0.000005)
    assert error == "0.5000"
    assert read.row("the sample as it is")[3:] == ["0.0000", "0.0000"]
