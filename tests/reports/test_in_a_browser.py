"""The page in headless Chromium: light, dark, narrow and printed. Continuous
integration installs the browser; elsewhere it may be missing."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import taciturn as tc

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
]
SEEN = """
<iframe src="panel.html" width="WIDTH" height="900" onload="seen(this)"></iframe>
<pre></pre>
<script>
function seen(frame) {
  const page = frame.contentDocument, view = frame.contentWindow;
  const pictures = [...page.querySelectorAll("figure svg")];
  document.querySelector("pre").textContent = JSON.stringify({
    overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    fetched: view.performance.getEntriesByType("resource").length,
    scripts: page.scripts.length,
    headings: [...page.querySelectorAll("h2")].map(each => each.textContent),
    flat: pictures.filter(each => each.getBoundingClientRect().height < 100).length,
    pictures: pictures.length,
    unnamed: pictures.filter(each => !each.getAttribute("aria-label")).length,
  });
}
</script>
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def folder(fit_pool, religion_sample, tmp_path_factory) -> Path:
    """A page with all of its sections."""
    folder = tmp_path_factory.mktemp("page")
    rounded = tc.random_round(religion_sample, replicates=20, random_seed=1)
    releases = {"rounded": rounded, "small": tc.Suppression(religion_sample, religion_sample == 1)}
    tc.report(fit_pool, folder / "panel.html", releases=releases, progressbar=False)
    return folder


def chromium(folder: Path, *words: str, page: str = "panel.html") -> str:
    profile = folder / "profile"
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *words, f"file://{folder / page}"],
        capture_output=True,
        check=True,
        cwd=folder,
        text=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_and_fetches_nothing(folder, width):
    (folder / "seen.html").write_text(SEEN.replace("WIDTH", str(width)))
    found = chromium(folder, "--virtual-time-budget=10000", "--dump-dom", page="seen.html")
    (text,) = re.findall(r"<pre>(.*?)</pre>", found)
    seen = json.loads(unescape(text))
    assert seen == {
        "overflow": 0,
        "fetched": 0,
        "scripts": 0,
        "flat": 0,
        "unnamed": 0,
        "pictures": seen["pictures"],
        "headings": [
            "Verdict",
            "How much is that?",
            "Where the risk is",
            "The riskiest cells",
            "What protection would change",
            "What an attacker can work out",
            "Can the numbers be relied on?",
            "What is assumed",
            "How to repeat it",
        ],
    }
    assert seen["pictures"] >= 4


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(folder, dark):
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    chromium(folder, *scheme, "--screenshot=page.png", "--window-size=900,1200")
    pixels = imread(folder / "page.png")[..., :3]
    paper, ink = (0.0, 1.0) if dark else (1.0, 0.0)
    assert pixels[2, 2].mean() == pytest.approx(paper, abs=0.15)
    assert np.abs(pixels - ink).mean(axis=-1).min() == pytest.approx(0, abs=0.15)


def test_printed(folder):
    chromium(folder, "--print-to-pdf=page.pdf", "--no-pdf-header-footer")
    printed = (folder / "page.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 12
