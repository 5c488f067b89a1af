"""Look at reports in headless Chromium.

Usage: python scripts/check_report.py [REPORT.html ...]

Each page is opened at the width of a desk and of a phone, in light and in dark, and printed. The
check fails on anything in the console, on a request to anywhere, on a page wider than the window,
and on a picture that does not load. Screenshots and PDFs are left in .cache/check-report. Without
arguments it makes two reports of its own. It needs Debian's package chromium, or the path of a
Chromium in the variable CHROMIUM.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path(__file__).parents[1] / ".cache" / "check-report"
WIDTHS = {"desk": 1280, "phone": 390}
MEASURE = """JSON.stringify({
  page: document.documentElement.scrollWidth,
  window: document.documentElement.clientWidth,
  height: document.documentElement.scrollHeight,
  broken: [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.alt),
  wide: [...document.querySelectorAll("body *")].filter(e =>
    e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 &&
    !e.parentElement.closest(".scroll, .law, .sheet, pre")).map(e => e.tagName + "#" + e.id + "." +
    e.className).slice(0, 5)
})"""


class Browser:
    """Chromium at the other end of two pipes, spoken to in its DevTools protocol."""

    def __init__(self, program: str, profile: str) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The protocol wants descriptors 3 and 4, which only a shell can name.
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        options = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"]
        options += ["--hide-scrollbars", "--no-first-run", f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, *options],
            pass_fds=(to_browser, from_browser),
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._last = 0
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict:
        """Call a method of the protocol and return its answer; events are kept."""
        self._last += 1
        message: dict = {"id": self._last, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str) -> None:
        """Wait for an event."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._receive())

    def _receive(self) -> dict:
        while b"\0" not in self._rest:
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise RuntimeError("Chromium has ended.")
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait()


def check(browser: Browser, page: Path, layout: str, scheme: str) -> list[str]:
    """Open a page once, save what it looks like, and return what is wrong with it."""
    browser.events.clear()
    size = {"width": WIDTHS[layout], "height": 900, "mobile": layout == "phone"}
    browser.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.call("Emulation.setEmulatedMedia", features=[feature])
    browser.call("Page.navigate", url=page.resolve().as_uri())
    browser.wait_for("Page.loadEventFired")
    found = json.loads(
        browser.call("Runtime.evaluate", expression=MEASURE)["result"]["value"],
    )
    clip = {"x": 0, "y": 0, "width": WIDTHS[layout], "height": found["height"], "scale": 1}
    shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    name = f"{page.stem}-{layout}-{scheme}.png"
    (OUT / name).write_bytes(base64.b64decode(shot["data"]))

    wrong = [f"picture not shown: {alt}" for alt in found["broken"]]
    if found["page"] > found["window"]:
        wrong.append(f"{found['page']} px wide in a window of {found['window']}: {found['wide']}")
    for event in browser.events:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown" or method == "Runtime.consoleAPICalled":
            wrong.append(f"console: {json.dumps(params)[:300]}")
        elif method == "Log.entryAdded":
            wrong.append(f"console: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("data:", page.resolve().as_uri())):
                wrong.append(f"request: {url}")
    return [f"{name}: {what}" for what in wrong]


def print_page(browser: Browser, page: Path) -> list[str]:
    """Save the open page as PDF."""
    browser.call("Emulation.clearDeviceMetricsOverride")
    pdf = browser.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
    path = OUT / f"{page.stem}.pdf"
    path.write_bytes(base64.b64decode(pdf["data"]))
    return [] if path.read_bytes().startswith(b"%PDF") else [f"{path.name}: not a PDF"]


def make_samples() -> list[Path]:
    """Write a report of Galileo's measurements, and one with everything that is awkward."""
    import numpy as np
    import pandas as pd

    import pmsr
    from pmsr.data import make_data
    from pmsr.report.content import gather_content
    from pmsr.report.page import write_report
    from pmsr.result.result import from_evolution
    from pmsr.search.evolution import run_evolution
    from pmsr.settings import QUICK, Search

    def make_report(path: Path, X, y, search: Search, **more) -> Path:
        options = {"search": search, "settings": QUICK, "random_seed": 1}
        data = make_data(X, y)
        result = from_evolution(run_evolution(data, **options), data, **options)
        return write_report(path, gather_content(result, **more))

    X, y = pmsr.load_galileo("shelf")
    shelf = make_report(
        OUT / "galileo.html",
        X,
        y,
        Search(operators=("+", "*", "/", "sqrt"), generations=20, population_size=40, n_islands=2),
        title="Galileo's ball on the shelf",
        source="galileo_shelf.csv",
        command="python scripts/check_report.py",
    )
    rng = np.random.default_rng(1)
    names = ["<script>alert(1)</script>", "speed [m/s] of a very long name & more", "$t_0$"]
    X = pd.DataFrame(rng.uniform(1.0, 3.0, (40, 3)), columns=names)
    y = 2.0 * X[names[0]] * X[names[1]] ** 2 + X[names[2]] + rng.exponential(0.5, 40)
    awkward = make_report(
        OUT / "awkward.html",
        X,
        y.rename("<b>target</b>"),
        Search(operators=("+", "-", "*", "/"), generations=10, population_size=40, n_islands=2),
        title="A <b>title</b> & more",
        warnings=["A column is called <script>alert(2)</script>."],
    )
    return [shelf, awkward]


def main() -> int:
    """Check the pages named on the command line, or samples."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        print("Found no chromium. Install Debian's package, or set CHROMIUM to its path.")
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    pages = [Path(name) for name in sys.argv[1:]] or make_samples()
    wrong = []
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(program, profile)
        try:
            for page in pages:
                for layout in WIDTHS:
                    for scheme in ("light", "dark"):
                        wrong += check(browser, page, layout, scheme)
                # In dark: the print must be light all the same.
                wrong += print_page(browser, page)
        finally:
            browser.close()
    for line in wrong:
        print(line)
    print(f"{len(pages)} reports, {len(wrong)} faults. Look at them in {OUT}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
