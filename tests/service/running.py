"""The service as a process, which can be killed."""

import os
import re
import subprocess
import sys
from pathlib import Path

__all__ = ["Running"]


class Running:
    """``taciturn serve`` on a log, once it answers."""

    def __init__(self, path: Path, *words: str) -> None:
        command = [sys.executable, "-m", "taciturn", "serve", str(path), *words]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.said = self.process.stderr.readline()
        found = re.search(r"http://\S+:(\d+)", self.said)
        self.port = int(found[1]) if found else 0

    def end(self, number: int) -> str:
        """Send a signal; what it said until its end, and what its workers said."""
        os.kill(self.process.pid, number)
        said = self.process.stderr.read()
        self.process.stderr.close()
        self.process.wait()
        return said
