"""Files that once were misread, took a process down or ended in a raw error: a corpus
that only grows.
"""

from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import parquet as pq

import taciturn as tc
from hostile.kinds import Kind
from hostile.tables import wrong_counts

__all__ = ["KINDS"]

HEADER = b"area,sex,count\n"
FILES: tuple[bytes, ...] = (
    b",".join(b"a%d" % number for number in range(10**6)) + b",count\n",
    HEADER + b"A,f,3\nA\0,f,4\n",
    HEADER + "A,f,3\nA\u200b,f,4\n".encode(),
    HEADER + b"A,f,3\nA ,f,4\n",
    HEADER + b"A,f,3\n A,f,4\n",
    HEADER + "\u00e9,f,3\ne\u0301,f,4\n".encode(),
    HEADER + b'A, "x",3\nA,x,4\n',
    HEADER + b'"A"x,f,3\n',
    HEADER + b"A,f,9000000000000000000\nB,f,9000000000000000000\nC,f,9000000000000000000\n",
    HEADER + b"A,f,9007199254740992\nB,f,9007199254740992\n",
    b"".join(b"%b%d," % (b"v", number) for number in range(31))
    + b"count\n"
    + b"a," * 31
    + b"1\n"
    + b"b," * 31
    + b"1\n",
    HEADER + b"A" * 100_000 + b",f,3\n",
    HEADER + b"A,f,1e400\n",
    HEADER + b"A,f,1" + b"0" * 5000 + b"\n",
    HEADER + b"A,f,0x10\n",
    HEADER + b"A,f,1_000\n",
    b"\xff\xfeA\0,\0",
    b"count\n3\n",
    b"area,area,count\nA,B,3\n",
    HEADER + b'A,f,"3\n',
    HEADER + b"A,f,3\rB,f,4\n",
    HEADER,
    b"",
)


def write_file(folder: Path, random: Random, number: int) -> Path:
    path = folder / "table.csv"
    path.write_bytes(FILES[number])
    return path


FRAME = pd.DataFrame({"area": ["A", "A", "B"], "sex": ["f", "m", "f"], "count": [3, 1, 4]})
METADATA: tuple[bytes, ...] = (
    *(b"", b"[]", b"{", b"null", b"\xff", b'{"index_columns": 1}', b'{"index_columns": [1, null]}'),
    b'{"index_columns": [{"kind": "range", "start": "a"}]}',
    b'{"index_columns": ["nowhere"]}',
    b'{"columns": 3}',
    b"[" * 100_000,
)


def write_metadata(folder: Path, random: Random, number: int) -> Path:
    """A Parquet file with odd metadata of pandas."""
    path = folder / "table.parquet"
    table = pa.Table.from_pandas(FRAME).replace_schema_metadata({b"pandas": METADATA[number]})
    pq.write_table(table, path)
    return path


def other_table(path: Path, table: Any) -> str | None:
    """The metadata change nothing."""
    return (
        None if table.values.sum() == 8 and set(table.dims) == {"area", "sex"} else str(table.sizes)
    )


KINDS = (
    Kind("finds, CSV", write_file, tc.read_table, wrong_counts, len(FILES)),
    Kind("finds, Parquet", write_metadata, tc.read_table, other_table, len(METADATA)),
)
