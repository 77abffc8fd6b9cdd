"""Run the benchmarks of `benchmarks/suite`, and make the tables of the page on speed.

Run as ``python benchmarks/speed.py``. It takes minutes and writes
``docs/explanation/_speed_*.md``. Times are the shortest of the rounds on this machine;
ratios are within the run."""

import json
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "explanation"
UNITS = {
    "risk by cells": ("ns a cell", 1e9),
    "risk by draws": ("µs a draw", 1e6),
    "risk beside NumPy": ("µs a draw", 1e6),
    "many tables": ("ms a table", 1e3),
    "areas by themselves": ("ms an area", 1e3),
    "areas that share a profile": ("ms an area", 1e3),
    "the machine": ("millions a second", 0.0),
}


def main() -> None:
    """Measure and write a table for each group."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "speed.json"
        suite = [sys.executable, "-m", "pytest", "benchmarks/suite", "-q", "-p", "no:xdist"]
        suite += ["-p", "no:cacheprovider", f"--benchmark-json={out}", *sys.argv[1:]]
        subprocess.run(suite, cwd=ROOT, check=True)
        found = json.loads(out.read_text(encoding="utf-8"))
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for case in found["benchmarks"]:
        groups[case["group"]].append(case)
    for group, cases in groups.items():
        name = group.lower().replace(" ", "_")
        (PAGES / f"_speed_{name}.md").write_text(table(group, cases), encoding="utf-8")
        print(f"{group}\n{table(group, cases)}")
    cpu = found["machine_info"]["cpu"]
    versions = [f"Python {platform.python_version()}", f"{cpu['count']} cores"]
    (PAGES / "_speed_machine.md").write_text(
        f"{cpu['brand_raw']}, {', '.join(versions)}\n", encoding="utf-8"
    )


def table(group: str, cases: list[dict[str, Any]]) -> str:
    """One row for each case; the first is what the others are compared with."""
    unit, scale = UNITS.get(group, ("ms", 1e3))
    lines = [f"| | {unit} | ratio |", "|---|---:|---:|"]
    first = None
    for case in cases:
        each = case["stats"]["min"] / case["extra_info"]["units"]
        value = each * scale if scale else 1 / each
        first = first or each
        ratio = first / each if not scale else each / first
        lines.append(f"| {case['name']} | {rounded(value)} | {rounded(ratio)} |")
    return "\n".join(lines) + "\n"


def rounded(value: float) -> str:
    """Two or three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
