"""Hostile files, by kind: how many were tried, and how the readers took them.

    python tests/hostile/run.py --cases 1000 --seed 1

Cases run in a process of their own, with a limit on its memory: a crash or a hang ends
it, is counted, and the next case begins in a new one. ``leaks`` are results that hold
what the file should not have been able to give, or that differ from what a second
reader finds: the package must have refused the file or read it as it is.
"""

import argparse
import resource
import selectors
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

OUTCOMES = ("read", "refused", "raw error", "hang", "crash", "leak")
SECONDS = 60.0  # for a case, also on a busy machine
MEMORY = 6 * 2**30


def kinds() -> dict:
    """All kinds by name."""
    from hostile import (
        argus,
        cards,
        certificates,
        finds,
        fits,
        logs,
        offices,
        releases,
        stores,
        tables,
    )

    modules = (tables, offices, argus, releases, finds, fits, cards, certificates, stores, logs)
    return {kind.name: kind for module in modules for kind in module.KINDS}


def try_case(name: str, number: int, seed: int, folder: Path) -> tuple[str, str]:
    """Outcome of one case, and what there is to say of it."""
    from taciturn.errors import TaciturnError

    kind = kinds()[name]
    path = kind.write(folder, Random(f"{name} {seed} {number}"), number)
    try:
        found = kind.read(path)
    except TaciturnError as error:
        return "refused", str(error)
    except Exception as error:
        return "raw error", f"{type(error).__name__}: {error}"
    wrong = kind.wrong(path, found)
    return ("read", "") if wrong is None else ("leak", wrong)


def work(name: str, first: int, last: int, seed: int) -> None:
    """Run cases one after the other, a line of output for each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    kinds()
    print("ready", flush=True)
    for number in range(first, last):
        with tempfile.TemporaryDirectory() as folder:
            outcome, said = try_case(name, number, seed, Path(folder))
        print(f"{outcome}\t{' '.join(said.split())[:300]}", flush=True)


def outcomes(name: str, cases: int, seed: int) -> Iterator[tuple[int, str, str]]:
    """Number, outcome and message of every case of a kind."""
    number = 0
    while number < cases:
        command = [sys.executable, __file__, "--work", name, str(number), str(cases), str(seed)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            for line in lines(process):
                if line is None:
                    process.kill()
                    yield number, "hang", f"more than {SECONDS:g} seconds"
                    number += 1
                    break
                if line != "ready":
                    outcome, _, said = line.partition("\t")
                    yield number, outcome, said
                    number += 1
            else:
                if number < cases:
                    yield number, "crash", f"exit status {process.wait()}"
                    number += 1


def lines(process: subprocess.Popen) -> Iterator[str | None]:
    """Lines of output as they come; None where one takes too long."""
    held = b""
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        until = time.monotonic() + 3 * SECONDS
        while True:
            if not waiting.select(max(0.0, until - time.monotonic())):
                yield None
                return
            block = process.stdout.read1(2**16)
            if not block:
                return
            *whole, held = (held + block).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")
            until = time.monotonic() + SECONDS


def main() -> int:
    """Run, print the table; 1 if anything but reading and refusing happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300, help="of each kind without an end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", help="only this one")
    parser.add_argument("--work", nargs=4, metavar="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        name, *numbers = arguments.work
        work(name, *map(int, numbers))
        return 0
    total: Counter[str] = Counter()
    examples = []
    print(
        f"{'kind':<22}{'tried':>7}"
        + "".join(
            f"{outcome + 's' * (outcome not in ('read', 'refused')):>12}" for outcome in OUTCOMES
        )
    )
    for name, kind in kinds().items():
        if arguments.kind not in (None, name):
            continue
        found: Counter[str] = Counter()
        for number, outcome, said in outcomes(name, kind.cases or arguments.cases, arguments.seed):
            found[outcome] += 1
            if outcome not in ("read", "refused"):
                examples.append(f"{name} {number}: {outcome}: {said}")
        print(line_of(name, found), flush=True)
        total += found
    print(line_of("all", total))
    print("\n".join(examples[:200]))
    return int(any(total[outcome] for outcome in OUTCOMES[2:]))


def line_of(name: str, found: Counter[str]) -> str:
    """A line of the table."""
    return f"{name:<22}{found.total():7}" + "".join(f"{found[outcome]:12}" for outcome in OUTCOMES)


if __name__ == "__main__":
    sys.exit(main())
