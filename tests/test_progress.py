"""Progress: on a terminal a line, in a notebook one output that is empty at the end,
and elsewhere no more than a full bar."""

import io
import sys
from types import ModuleType, SimpleNamespace

import pytest

import taciturn as tc
from taciturn.progress import progress_bar, progress_steps


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Notebook:
    """What the kernel is told to display, in order."""

    def __init__(self, monkeypatch):
        self.made, self.texts = 0, []
        ipython, shown = ModuleType("IPython"), ModuleType("IPython.display")
        ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
        shown.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", shown)

    def display(self, texts, *, raw, display_id):
        assert raw
        assert display_id is True
        self.made += 1
        self.texts.append(texts)
        return self

    def update(self, texts, *, raw):
        assert raw
        self.texts.append(texts)

    @property
    def lines(self):
        """What is read, each text once."""
        plain = [texts["text/plain"] for texts in self.texts]
        return [line for line, before in zip(plain, [None, *plain], strict=False) if line != before]


@pytest.fixture
def notebook(monkeypatch):
    return Notebook(monkeypatch)


EMPTY = {"text/plain": "", "text/html": ""}


def test_a_notebook_has_one_output_that_is_empty_at_the_end(notebook, capsys):
    with progress_bar("cells & more", 10_000, shown=True) as bar:
        for _ in range(10_000):
            bar.advance()
    assert notebook.made == 1
    assert notebook.texts[0]["text/plain"].endswith("] 0/10000")
    assert notebook.texts[0]["text/html"].startswith('cells &amp; more <progress value="0"')
    assert notebook.texts[-1] == EMPTY
    assert len(notebook.texts) < 100  # not one for each piece
    assert capsys.readouterr() == ("", "")


def test_what_is_inside_appears_in_the_same_place_and_then_goes(notebook):
    with progress_steps("first", shown=True) as say:
        with progress_bar("bar", 2, shown=True) as bar:
            bar.advance()
        with progress_steps("inner", shown=False):
            pass
        say("second")
    assert notebook.made == 1
    bar = "bar [..............................] 0/2"
    assert notebook.lines == ["first ...", bar, "first ...", "second ...", ""]


def test_an_error_leaves_nothing_behind(notebook):
    with pytest.raises(KeyboardInterrupt), progress_steps("work", shown=True):
        raise KeyboardInterrupt
    assert notebook.texts[-1] == EMPTY
    with progress_bar("next", 1, shown=True):
        pass
    assert notebook.made == 2


def test_a_terminal_shows_steps_while_they_last_and_keeps_a_full_bar(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_steps("compiling", shown=True) as say:
        with progress_bar("drawing", 3, shown=True) as bar:
            bar.reach(2)
        say("writing")
    text = sys.stderr.getvalue()
    assert "writing" in text
    assert text.endswith("\x1b[2K")  # the line is erased
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar("cells", 3, shown=True) as bar:
        bar.finish("patterns")
    last = sys.stderr.getvalue().splitlines()[-2]  # before the cursor is shown again
    assert "patterns" in last
    assert "3/3" in last


def test_elsewhere_steps_write_nothing_and_a_bar_one_line(capsys):
    with progress_steps("compiling", shown=True):
        pass
    with progress_bar("hidden", 3, shown=False) as bar:
        bar.advance()
    assert capsys.readouterr() == ("", "")
    with progress_bar("cells", 3, shown=True) as bar:
        bar.advance()
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "3/3" in err


def titles(notebook):
    return [line.removesuffix(" ...").split(" [")[0] for line in notebook.lines]


def test_a_fit_says_what_it_does(notebook, religion_sample, capsys):
    tc.LinearPool().fit(religion_sample, population_size=2449, draws=20, random_seed=1)
    assert titles(notebook) == [
        "learning the parameters",
        "learning the parameters of dirichlet, restaurant",
        "learning the parameters",
        "leaving individuals out",
        "drawing populations and samples",
        "",
    ]
    assert notebook.made == 1
    assert capsys.readouterr() == ("", "")


def test_chains_in_threads_report_on_the_line_of_their_fit(notebook, religion_sample):
    arguments = {"population_size": 2449, "draws": 5, "tune": 5, "random_seed": 1}
    with pytest.warns(tc.ConvergenceWarning):
        tc.LatentClass().fit(religion_sample, **arguments)
    assert "latent classes, first chain" in titles(notebook)
    assert (notebook.made, notebook.texts[-1]) == (1, EMPTY)


def test_suppression_and_attack_say_what_they_do(notebook, religion):
    pattern = tc.suppress(religion, religion == 1, random_seed=1)
    first = titles(notebook)
    assert first[:2] == ["setting up the equations", ""]
    assert {"primary cells to protect", "cheaper patterns"} <= set(first)
    tc.attacker_bounds(pattern.release)
    assert titles(notebook)[len(first) :] == [
        "setting up the equations",
        "",
        "cells that are open",
        "",
    ]


@pytest.mark.slow
def test_nuts_says_that_it_compiles_and_counts_draws(notebook, religion_sample, capfd):
    arguments = {"population_size": 2449, "draws": 500, "tune": 500, "random_seed": 1}
    tc.ChineseRestaurant().fit(religion_sample, method="nuts", **arguments)
    found = titles(notebook)
    assert found[:2] == ["learning the parameters", "compiling the model"]
    assert "draws by NUTS" in found
    assert notebook.made == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_real_kernel_keeps_no_trace():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    code = (
        "import taciturn as tc; table = tc.load_dataset('area_by_religion');"
        " tc.attacker_bounds(tc.Suppression(table, table < 5));"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    assert [output.data for output in notebook.cells[0].outputs] == [EMPTY] * 2
