"""Mutation testing, bounded: of the mutants that mutmut makes of the code named in
``[tool.mutmut]``, a sample is run against the tests named there.

A group has an equal share of the sample, spread evenly over its files. mutmut makes no
mutants of decorated functions, so none of those that Numba compiles, and none of code
outside functions. A mutant that no test calls has survived; one that runs out of time
was noticed.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants, walk_mutatable_files
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.stats import status_by_exit_code

LEAST_SHARE = 0.75  # of 60 with seed 1, 50 were noticed; three standard errors below 0.88
FOLDERS = ("attack", "suppression", "perturbation")
NOTICED = {"killed", "timeout"}


def group_of(path: Path) -> str:
    """A folder of the package, or ``writers``."""
    return next((name for name in FOLDERS if name in path.parts), "writers")


def make_mutants() -> list[SourceFileMutationData]:
    """Write the mutants of all files; those of unchanged files are kept."""
    Path("mutants").mkdir(exist_ok=True)
    set_mutant_under_test("mutant_generation")
    copy_src_dir()
    copy_also_copy_files()
    create_mutants(os.cpu_count() or 1)
    set_mutant_under_test("")
    return made_mutants()


def made_mutants() -> list[SourceFileMutationData]:
    """Mutants by file, with the outcomes so far."""
    made = [SourceFileMutationData(path=path) for path in sorted(walk_mutatable_files())]
    for file in made:
        file.load()
    return made


def draw(names: list[str], number: int, generator: random.Random) -> list[str]:
    """A systematic sample: one name, at random, of each of `number` equal stretches."""
    number = min(number, len(names))
    return [names[int((i + generator.random()) * len(names) / number)] for i in range(number)]


def run_mutants(names: list[str], minutes: float) -> None:
    """Let mutmut run these mutants, each against the tests that call its function."""
    command = [sys.executable, "-m", "mutmut", "run", *names]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        process.wait(timeout=60 * minutes)
    except subprocess.TimeoutExpired:
        print(f"\nstopped after {minutes:g} minutes")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def forget(files: list[SourceFileMutationData], names: list[str]) -> None:
    """Drop earlier outcomes, so that none is taken for one of this run."""
    for file in files:
        for name in set(names) & set(file.exit_code_by_key):
            file.exit_code_by_key[name] = None
        file.save()


def main() -> int:
    """Sample, run, print; 1 unless all were run and enough of them were noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=60, help="mutants to run")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--minutes", type=float, default=20.0, help="limit of the run")
    arguments = parser.parse_args()

    files = make_mutants()
    groups: dict[str, list[str]] = {name: [] for name in (*FOLDERS, "writers")}
    for file in files:
        groups[group_of(file.path)] += file.exit_code_by_key
    generator = random.Random(arguments.seed)
    each = -(-arguments.sample // len(groups))
    sample = {group: draw(names, each, generator) for group, names in groups.items()}
    sampled = [name for names in sample.values() for name in names]
    forget(files, sampled)
    run_mutants(sampled, arguments.minutes)

    status = {
        name: status_by_exit_code[code]
        for file in made_mutants()
        for name, code in file.exit_code_by_key.items()
    }
    survivors = [name for name in sampled if status[name] not in NOTICED | {"not checked"}]
    for name in survivors:
        print(f"\n{name}: {status[name]}\n{get_diff_for_mutant(name)}")
    print("group         mutants  sampled  killed  timeout  survived  not run  share")
    total: Counter[str] = Counter()
    for group, names in sample.items():
        found = Counter(status[name] for name in names)
        total += found
        print(line_of(group, len(groups[group]), found))
    print(line_of("all", sum(map(len, groups.values())), total))
    print(f"least share accepted: {LEAST_SHARE:.2f}")
    return int(total["not checked"] > 0 or share_of(total) < LEAST_SHARE)


def share_of(found: Counter[str]) -> float:
    """Share that was noticed of the mutants that were run; 0 if none was."""
    run = found.total() - found["not checked"]
    return (found["killed"] + found["timeout"]) / run if run else 0.0


def line_of(group: str, mutants: int, found: Counter[str]) -> str:
    """A line of the table."""
    survived = found.total() - sum(found[name] for name in ("killed", "timeout", "not checked"))
    return (
        f"{group:<13}{mutants:8}{found.total():9}{found['killed']:8}{found['timeout']:9}"
        f"{survived:10}{found['not checked']:9}{share_of(found):7.2f}"
    )


if __name__ == "__main__":
    sys.exit(main())
