"""A published table as a row of the file of a log."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from taciturn.attack.system import UNLIMITED
from taciturn.release_log.published import PublishedTable

__all__ = ["row_of", "table_of"]


def row_of(table: PublishedTable) -> list[Any]:
    """Its definition, the least and the most of its cells, how they were perturbed, and
    what was released of them.
    """
    most = [None if x >= UNLIMITED else x for x in table.most.ravel().tolist()]
    noise = table.noise
    return [
        json.dumps(table.as_json()),
        table.least.ravel().tolist(),
        most,
        None if noise is None else json.dumps(noise.as_json()),
        None if noise is None else noise.released.reshape(len(noise.released), -1).tolist(),
    ]


def table_of(row: Sequence[Any], sizes: Mapping[str, int]) -> PublishedTable:
    """What `row_of` gave, over variables of these sizes; errors as of
    `PublishedTable.from_json`.
    """
    definition, least, most, noise, released = row
    return PublishedTable.from_json(
        json.loads(definition),
        sizes,
        least,
        [UNLIMITED if x is None else x for x in most],
        None if noise is None else (json.loads(noise), released),
    )
