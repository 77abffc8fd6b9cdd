"""What is printed of sensitive cells, with reasons that quote true values."""

from typing import TYPE_CHECKING, Any, Final

from taciturn.cli.files import StandardOutput, Target
from taciturn.cli.patterns import pattern_facts, pattern_text
from taciturn.cli.printing import Format, print_as
from taciturn.cli.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    import xarray as xr

    from taciturn.suppression import SuppressionPattern

__all__ = ["print_sensitive"]

type Margins = Mapping[tuple[str, ...], xr.Dataset]
"""Which cells of each margin are sensitive."""

_REASON: Final = "reason_not_for_release"
_QUOTED: Final = "the reasons quote true values"


def print_sensitive(
    found: "Mapping[str, Margins]",
    variables: "Sequence[str]",
    *,
    total: str,
    top: int,
    form: Format,
    patterns: "Mapping[str, SuppressionPattern]",
    outputs: "Sequence[Target]",
) -> None:
    """Say what is sensitive of each quantity, and what is suppressed where anything is
    written.
    """
    import pandas as pd

    texts, facts, tables = [], {}, []
    for number, (name, margins) in enumerate(found.items()):
        rows = _sensitive_rows(margins, variables, total)
        text, of_one = _sensitive_text(margins, top), _facts(margins, rows)
        if outputs:
            text += f"\n\n{pattern_text(patterns[name])}"
            of_one |= {"pattern": pattern_facts(patterns[name]), "output": outputs[number]}
        texts.append(f"{printable(name)}\n{text}" if len(found) > 1 else text)
        facts[name] = of_one
        tables.append(rows.assign(value=name)[["value", *rows]] if len(found) > 1 else rows)
    several = {"not_for_release": _QUOTED, "quantities": facts}
    print_as(
        form,
        text="\n\n".join(texts),
        facts=several if len(found) > 1 else next(iter(facts.values())),
        table=pd.concat(tables),
        to_stderr=any(isinstance(output, StandardOutput) for output in outputs),
    )


def _sensitive_rows(found: "Margins", variables: "Sequence[str]", total: str) -> "pd.DataFrame":
    """A row for each sensitive cell, with the reasons."""
    import numpy as np
    import pandas as pd

    from taciturn.tables.margins import hierarchies

    finest = next(iter(found.values()))["sensitive"]
    column_of = {level: dim for dim, levels in hierarchies(finest).items() for level in levels}
    rows = []
    for names, cells in found.items():
        reasons = np.atleast_1d(cells["reason"].values)
        for place in map(tuple, np.argwhere(np.atleast_1d(cells["sensitive"].values))):
            labels = {
                column_of.get(name, name): cells[name].values[at]
                for name, at in zip(names, place, strict=False)
            }
            rows.append(
                {name: labels.get(name, total) for name in variables} | {_REASON: reasons[place]}
            )
    return pd.DataFrame(rows, columns=[*variables, _REASON])


def _facts(found: "Margins", rows: "pd.DataFrame") -> dict[str, Any]:
    """How many cells of each margin are sensitive, and all of them."""
    return {
        "not_for_release": _QUOTED,
        "margins": [
            {
                "variables": list(names),
                "sensitive": int(cells["sensitive"].sum()),
                "unsafe_share": float(cells["unsafe_share"]),
            }
            for names, cells in found.items()
        ],
        "sensitive": rows.to_dict("records"),
    }


def _sensitive_text(found: "Margins", top: int) -> str:
    """How many cells of each margin are sensitive, and the first of them with their
    reasons.
    """
    import numpy as np

    lines: list[str] = []
    listed: list[str] = []
    for names, cells in found.items():
        sensitive = np.argwhere(np.atleast_1d(cells["sensitive"].values))
        share = 100 * float(cells["unsafe_share"])
        name = " x ".join(names) or "grand total"
        lines.append(
            f"{printable(name)}: {len(sensitive)} sensitive, {share:.1f} % of the cells with a"
            " contributor"
        )
        for position in sensitive[: max(top - len(listed), 0)]:
            at = tuple(int(i) for i in position) if names else ()
            labels = ", ".join(
                f"{name}={cells[name].values[i]}" for name, i in zip(names, at, strict=True)
            )
            listed.append(
                printable(f"  {labels or 'the grand total'}: {cells['reason'].values[at]}")
            )
    return "\n".join([*lines, *([""] if listed else []), *listed])
