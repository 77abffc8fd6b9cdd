"""CSV files as they are written in Europe: other separators, other encodings, and
numbers that mean something else there."""

import csv
import io
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, strategies as st

import taciturn as tc
from taciturn.cli import cli
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.tables.sources import csv_text

ROWS = [["Gemeinde", "Geschlecht", "count"], ["Zürich", "f", "3"], ["Genève", "m", "4"]]
TABLE = tc.read_table(
    pd.DataFrame(ROWS[1:], columns=ROWS[0]), categories={"Geschlecht": ["f", "m"]}
)


def written(folder: Path, sep: str = ",", encoding: str = "utf-8", rows=ROWS) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=sep).writerows(rows)
    path = folder / "table.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    return path


@pytest.mark.parametrize("block", [5, 2**22])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_separator_is_found(tmp_path, monkeypatch, sep, encoding, block):
    monkeypatch.setattr(csv_text, "_BLOCK", block)
    assert tc.read_table(written(tmp_path, sep, encoding)).identical(TABLE)


@pytest.mark.parametrize("block", [5, 2**22])
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "UTF-16-LE", "cp037", "utf8"])
@pytest.mark.parametrize("sep", [";", "~"])
def test_an_encoding_and_a_separator_that_are_given(tmp_path, monkeypatch, sep, encoding, block):
    monkeypatch.setattr(csv_text, "_BLOCK", block)
    path = written(tmp_path, sep, encoding)
    assert tc.read_table(path, sep=sep, encoding=encoding).identical(TABLE)


@pytest.mark.parametrize("sep", [";", "\t"])
def test_records_of_counts_and_magnitudes(tmp_path, sep):
    path = written(tmp_path, sep, "latin-1", rows=[(*ROWS[0][:-1], "Umsatz"), *ROWS[1:]])
    given = {"sep": sep, "encoding": "latin-1"}
    assert tc.tabulate(path, ["Gemeinde"], **given).values.tolist() == [1, 1]
    totals = tc.tabulate_magnitude(path, "Gemeinde", "Umsatz", **given)
    assert totals["total"].to_series().to_dict() == {"Zürich": 3, "Genève": 4}
    protected = tc.protect_table(
        path, "Gemeinde", "Umsatz", tc.Dominance(1, 1), progressbar=False, **given
    )
    assert set(protected.tables) == {("Gemeinde",), ()}


def test_a_byte_that_is_no_utf_8_names_the_remedy(tmp_path):
    path = written(tmp_path, ";", "latin-1")
    remedy = r'line 2, at position 28, the byte 0xFC; .* encoding="latin-1" .* --encoding'
    with pytest.raises(FileFormatError, match=remedy):
        tc.read_table(path)


@pytest.mark.parametrize(
    ("encoding", "given", "message"),
    [
        ("utf-16", None, 'it is in UTF-16, .* give encoding="utf-16"'),
        ("utf-32", None, 'it is in UTF-32, .* give encoding="utf-32"'),
        ("utf-8-sig", "latin-1", 'it is in UTF-8, .* give encoding="utf-8"'),
        ("latin-1", "ascii", "not a text file in ASCII: .* position 28, the byte 0xFC"),
        ("latin-1", "idna", "not a text file in IDNA"),
    ],
)
def test_another_encoding_than_that_of_the_file(tmp_path, encoding, given, message):
    with pytest.raises(FileFormatError, match=message):
        tc.read_table(written(tmp_path, ";", encoding), encoding=given)


@pytest.mark.parametrize("block", [4, 5, 2**22])
def test_a_nul_in_utf_16_is_found_where_it_stands(tmp_path, monkeypatch, block):
    monkeypatch.setattr(csv_text, "_BLOCK", block)
    path = tmp_path / "table.csv"
    path.write_bytes("a,count\nA\0,1\n".encode("utf-16-le"))
    with pytest.raises(FileFormatError, match="a NUL in line 2, at position 18"):
        tc.read_table(path, encoding="utf-16-le")


def test_windows_letters_read_as_latin_1_are_not_taken_for_letters(tmp_path):
    path = written(tmp_path, ",", "cp1252", [["area", "count"], ["€", "1"]])
    with pytest.raises(TableError, match=r"holds U\+0080"):
        tc.read_table(path, encoding="latin-1")


def test_marks_in_quotes_do_not_separate(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('"a;b",count\n"x;y",3\n', encoding="utf-8")
    assert tc.read_table(path)["a;b"].values.tolist() == ["x;y"]
    path.write_text('"a\n;b"|count\nx|3\n', encoding="utf-8")
    with pytest.raises(TableError, match=r"U\+000A"):  # the name is read whole
        tc.read_table(path)


def test_a_line_of_separators_only_is_no_blank_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a\tb\tcount\nx\ty\t3\n\t\t\n \n", encoding="utf-8")
    with pytest.raises(TableError, match="a label is missing: 'a' in row 2"):
        tc.read_table(path)


def test_a_separator_that_is_not_that_of_the_file(tmp_path):
    with pytest.raises(FileFormatError, match="must be separated by ','; the header is"):
        tc.read_table(written(tmp_path, ";"), sep=",")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sep": ";;"}, "sep must be one character .*, got ';;'"),
        ({"sep": '"'}, "sep must be one character"),
        ({"sep": "x"}, "sep must be one character"),
        ({"sep": 7}, "sep must be one character"),
        ({"encoding": "latin-17"}, "encoding must be one that Python knows, .*got 'latin-17'"),
        ({"encoding": "base64"}, "encoding must be one"),
        ({"encoding": 7}, "encoding must be one"),
    ],
)
def test_separators_and_encodings_that_are_none(tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        tc.read_table(written(tmp_path), **options)


@pytest.mark.parametrize("name", ["sep", "encoding"])
def test_they_are_those_of_a_csv_file(tmp_path, name):
    frame = pd.DataFrame({"area": ["A"], "count": [1]})
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet", tc.read_table(frame)):
        with pytest.raises(ParameterError, match=f"{name} is that of a CSV file"):
            tc.read_table(source, **{name: ";"})


@pytest.mark.parametrize("text", ["1,5", "1.234,50", "1 234,5", "1,234", "-,5"])
def test_decimal_commas_are_refused_with_the_remedy(tmp_path, text):
    path = written(tmp_path, ";", rows=[["area", "x"], ["A", text]])
    remedy = "write a point before decimals, and nothing between thousands"
    with pytest.raises(TableError, match=remedy):
        tc.tabulate_magnitude(path, "area", "x", decimals=2)
    with pytest.raises(TableError, match=remedy):
        tc.read_table(path, count="x")


@pytest.mark.parametrize("text", ["1.000", "12.500", "999.000", "-1.000"])
def test_what_may_be_thousands_is_refused(tmp_path, text):
    path = written(tmp_path, ";", rows=[["area", "x"], ["A", text]])
    with pytest.raises(TableError, match="if the point separates thousands, leave it out"):
        tc.tabulate_magnitude(path, "area", "x", decimals=2)
    with pytest.raises(TableError, match="if the point separates thousands, leave it out"):
        tc.read_table(path, count="x")
    frame = pd.DataFrame({"area": ["A"], "x": [text]})
    columns = pa.Table.from_pandas(frame)
    coded = columns.set_column(1, "x", columns["x"].dictionary_encode())
    for records in (frame, frame.astype("string"), frame.astype("category"), columns, coded):
        with pytest.raises(TableError, match=r"row 1 of .* if the point separates thousands"):
            tc.tabulate_magnitude(records, "area", "x", decimals=2)
    exact = frame.assign(x=Decimal(text))  # a number, in which the point is one
    assert tc.tabulate_magnitude(exact, "area", "x", decimals=1)["total"].item() == float(text)
    read = tc.tabulate_magnitude(path, "area", "x", decimals=3)
    assert read["total"].item() == float(text)


@given(st.integers(0, 10**6), st.sampled_from(["{}", "{}.", "{}.0", "{}.00", "{}.0000"]))
def test_other_ways_to_write_a_count_are_read(number, form):
    rows = pd.DataFrame({"area": ["A"], "count": [form.format(number)]})
    assert tc.read_table(rows).item() == number


LETTERS = st.text(
    st.characters(codec="latin-1", categories=["L", "Nd"], include_characters=',;|"'), min_size=1
)


@example(labels=["0", "OVERALL"], sep=",")
@given(st.lists(LETTERS, min_size=1, max_size=6, unique=True), st.sampled_from(",;|"))
def test_any_labels_survive_a_file(tmp_path_factory, labels, sep):
    # Powers of two: none is the sum of the others, as a label such as "Total" says.
    rows = [["area", "count"], *([label, str(2**i)] for i, label in enumerate(labels))]
    path = written(tmp_path_factory.mktemp("d"), sep, "latin-1", rows)
    read = tc.read_table(path, sep=sep, encoding="latin-1")
    assert read.identical(tc.read_table(pd.DataFrame(rows[1:], columns=rows[0])))


@pytest.mark.parametrize(
    "arguments",
    [
        ["perturb", "{}", "--method", "conventional-round", "--report"],
        ["attack", "{}", "--margin", "Gemeinde,Geschlecht", "--linked", "Gemeinde"],
        ["rules", "{}", "--variables", "Gemeinde", "--value", "count", "--rule", "freq:3"],
    ],
)
def test_commands_read_them(tmp_path, arguments):
    from click.testing import CliRunner

    path = written(tmp_path, "\t", "latin-1")
    arguments = [argument.format(path) for argument in arguments]
    done = CliRunner().invoke(cli, [*arguments, "--sep", "tab", "--encoding", "latin-1"])
    assert done.exit_code == 0, done.output
    assert isinstance(CliRunner().invoke(cli, arguments).exception, FileFormatError)
    for wrong in (["--sep", "xx"], ["--encoding", "klingon"]):
        assert CliRunner().invoke(cli, [*arguments, *wrong]).exit_code == 2
