"""One run of pytauargus, for ``suppression.py``, which starts this in another Python
environment: that of pytauargus, which needs nothing of this project.

The folder it is started in holds ``asked.json`` and ``records.csv``; ``found.json`` is
written there."""

import json
import time
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from pytauargus import protect


def main() -> None:
    """Protect the tables and write which cells are suppressed."""
    asked = json.loads(Path("asked.json").read_text(encoding="utf-8"))
    records = pd.read_csv("records.csv", dtype=dict.fromkeys(asked["variables"], str))
    start = time.perf_counter()
    result = protect(
        records[[*asked["variables"], "x"]],
        asked["tables"],
        response="x",
        safety_rules=asked["rule"],
        suppress=asked["method"],
        hrc=asked["hierarchies"] or None,
    )
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    cells: dict[str, dict[tuple[str, ...], float]] = {"U": {}, "M": {}, "S": {}}
    for names, table in zip(asked["tables"], result.tables, strict=True):
        for row in table.rows:
            labels = (row[name] if name in names else "Total" for name in asked["variables"])
            cells.setdefault(row["status"], {})[tuple(labels)] = row["x"]
    found = {
        "version": version("pytauargus"),
        "seconds": seconds,
        "memory": int(status.split("VmHWM:")[1].split()[0]) / 1024,
        "primary": sorted(cells["U"]),
        "suppressed": sorted((cells["U"].keys() | cells["M"].keys()) - cells["S"].keys()),
        "secondary": len(cells["M"]),
        "cost": sum(cells["M"].values()),
        "at_odds": len(cells["M"].keys() & cells["S"].keys()),
    }
    Path("found.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
