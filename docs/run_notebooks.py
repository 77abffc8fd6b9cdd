"""Execute the notebooks.

``python docs/run_notebooks.py`` runs a copy of each from its own folder and fails where
a cell fails, writes to the error stream or stores what it should not: progress bars,
paths of a machine, more than 600 kB. ``--write`` keeps the new outputs. Names of
notebooks, such as ``01_from_a_sample_to_its_risk``, run only these."""

import argparse
import os
import re
import sys
from pathlib import Path

os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # another stores no figures
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
LARGEST = 600_000
MACHINE_PATH = re.compile(r"/(home|root|tmp|work|Users|usr|var)/[\w.]")


def main() -> int:
    """Run the notebooks; the exit status is 0 where all are as they should be."""
    paths = {path.stem: path for path in sorted(NOTEBOOKS.glob("*.ipynb"))}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the new outputs")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(paths)}")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(paths)):
        parser.error(f"no notebook is named {', '.join(unknown)}; there are {', '.join(paths)}")
    failed = 0
    for path in [paths[name] for name in given.names] or paths.values():
        stored = nbformat.read(path, as_version=4)
        fresh = nbformat.from_dict(stored)
        NotebookClient(
            fresh, timeout=600, resources={"metadata": {"path": str(NOTEBOOKS)}}
        ).execute()
        tidy(fresh)
        problems = problems_of(fresh)
        if given.write:
            nbformat.write(fresh, path)
        else:
            problems += [f"as stored: {problem}" for problem in problems_of(stored)]
        print(f"{path.name}: {'; '.join(problems) or 'ok'}")
        failed += bool(problems)
    return int(failed > 0)


def tidy(notebook: nbformat.NotebookNode) -> None:
    """Drop what changes from run to run and says nothing."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}


def problems_of(notebook: nbformat.NotebookNode) -> list[str]:
    """Say what a reader should not find in the notebook."""
    found = []
    size = len(nbformat.writes(notebook).encode())
    if size > LARGEST:
        found.append(f"{size} bytes, at most {LARGEST} are accepted")
    for number, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
        if cell.source and cell.execution_count is None:
            found.append(f"code cell {number} was not executed")
        for output in cell.outputs:
            text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"code cell {number} has an error or a warning: {text[:200]!r}")
            html = output.get("data", {}).get("text/html", "")
            if MACHINE_PATH.search(text) or MACHINE_PATH.search(html):
                found.append(f"code cell {number} shows a path of a machine")
    return found


if __name__ == "__main__":
    sys.exit(main())
