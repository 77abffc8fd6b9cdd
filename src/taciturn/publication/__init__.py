"""Files of releases, of every kind: published values and the status of each cell."""

from taciturn.publication.reading import read_release
from taciturn.publication.release_file import write_release
from taciturn.publication.rows import release_rows

__all__ = ["read_release", "release_rows", "write_release"]
