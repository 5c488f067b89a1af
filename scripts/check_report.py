"""Look at reports in headless Chromium, and use them.

Usage: python scripts/check_report.py [REPORT.html ...]

Each page is opened at the widths of a phone, a tablet and a desk, in light and in dark, and without
its script; and printed. The check fails on anything in the console, on a request to anywhere, on a
page wider than the window, on a picture that does not load, on letters whose contrast is below AA
of the WCAG, and on a page of more than 2 MB. Of its own reports, which it makes without arguments,
it chooses laws by a row, by a point and by the keyboard, types inputs, and compares what the page
says with what pmsr predicts. Screenshots and PDFs are left in .cache/check-report. It needs
Debian's package chromium, or the path of a Chromium in the variable CHROMIUM; without one it says
so and checks nothing.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

OUT = Path(__file__).parents[1] / ".cache" / "check-report"
WIDTHS = {"phone": 360, "tablet": 768, "desk": 1440}
MAX_BYTES = 2_000_000
MEASURE = """JSON.stringify({
  page: document.documentElement.scrollWidth,
  window: document.documentElement.clientWidth,
  height: document.documentElement.scrollHeight,
  broken: [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.alt),
  wide: [...document.querySelectorAll("body *")].filter(e =>
    e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 &&
    !e.parentElement.closest(
      ".scroll, .law, .sheet, .formula, .what, .inline, pre, svg, math"))
    .map(e => e.tagName + "#" + e.id + "." + e.className).slice(0, 5)
})"""

# Letters against what lies behind them: 4.5, or 3 for large ones.
CONTRAST = """(() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color[3] > 0.99) return color;
    }
    return parse(getComputedStyle(document.body).backgroundColor);
  };
  const faults = new Set();
  for (const e of document.querySelectorAll("body *")) {
    if (["SCRIPT", "STYLE", "TEMPLATE", "OPTION"].includes(e.tagName.toUpperCase())) continue;
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), isSvg = e.ownerSVGElement;
    const ink = parse(isSvg ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (isLarge ? 3 : 4.5))
      faults.add(`${e.tagName}.${e.getAttribute("class") || ""} ${ratio.toFixed(2)}: `
        + e.textContent.trim().slice(0, 30));
  }
  return JSON.stringify([...faults].slice(0, 5));
})()"""


class Question(NamedTuple):
    """An input to a law, and what pmsr predicts there."""

    rank: int
    inputs: dict[int, float]
    mean: float
    low: float
    high: float
    group: int | None = None


class Browser:
    """Chromium at the other end of two pipes, spoken to in its DevTools protocol."""

    def __init__(self, program: str, profile: str) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The protocol wants descriptors 3 and 4, which only a shell can name.
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        options = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"]
        options += ["--hide-scrollbars", "--no-first-run", f"--user-data-dir={profile}"]
        options += ["--disable-quic", "--disable-background-networking", "--disable-sync"]
        options += ["--disable-component-update"]
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

    def evaluate(self, expression: str) -> object:
        """Return the value of an expression in the open page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression[:80]}: {answer['exceptionDetails']['text']}")
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        code = {"Enter": 13, "ArrowRight": 39, "Tab": 9}[key]
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, selector: str) -> None:
        """Click into the middle of an element, as a mouse does."""
        place = self.evaluate(
            f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center", behavior: "instant"}});
            const r = e.getBoundingClientRect();
            return [r.x + r.width / 2, r.y + r.height / 2]; }})()"""
        )
        x, y = place  # type: ignore[misc]
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait()


def open_page(browser: Browser, page: Path, width: int, scheme: str) -> None:
    """Open a page at a width, in light or in dark."""
    browser.events.clear()
    size = {"width": width, "height": 900, "mobile": width < 500}
    browser.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.call("Emulation.setEmulatedMedia", features=[feature])
    browser.call("Page.navigate", url=page.resolve().as_uri())
    browser.wait_for("Page.loadEventFired")


def check(browser: Browser, page: Path, layout: str, scheme: str, script: bool = True) -> list[str]:
    """Open a page once, save what it looks like, and return what is wrong with it."""
    browser.call("Emulation.setScriptExecutionDisabled", value=not script)
    open_page(browser, page, WIDTHS[layout], scheme)
    found = json.loads(str(browser.evaluate(MEASURE)))
    clip = {"x": 0, "y": 0, "width": WIDTHS[layout], "height": found["height"], "scale": 1}
    shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    name = f"{page.stem}-{layout}-{scheme}{'' if script else '-still'}.png"
    (OUT / name).write_bytes(base64.b64decode(shot["data"]))

    wrong = [f"picture not shown: {alt}" for alt in found["broken"]]
    if found["page"] > found["window"]:
        wrong.append(f"{found['page']} px wide in a window of {found['window']}: {found['wide']}")
    wrong += [f"contrast {fault}" for fault in json.loads(str(browser.evaluate(CONTRAST)))]
    wrong += find_events(browser, page)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    return [f"{name}: {what}" for what in wrong]


def find_events(browser: Browser, page: Path) -> list[str]:
    """Return what the console and the network have seen since the page was opened."""
    wrong = []
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
    return wrong


def use(browser: Browser, page: Path, questions: list[Question]) -> list[str]:
    """Choose laws and type inputs; return where the page does not say what pmsr says."""
    open_page(browser, page, WIDTHS["desk"], "light")
    wrong = []
    for question in questions:
        # A law like another one is folded beneath it.
        browser.evaluate("document.querySelectorAll('details').forEach(e => (e.open = true))")
        browser.click(f'[data-row="{question.rank}"] button.pick')
        shown = browser.evaluate("document.getElementById('live-choice').value")
        if shown != str(question.rank):
            wrong.append(f"law {question.rank} was clicked, {shown} is shown")
        if question.group is not None:
            browser.evaluate(
                "(() => { const e = document.getElementById('input-group');"
                f"e.value = {question.group}; e.dispatchEvent(new Event('change')); }})()"
            )
        for place, value in question.inputs.items():
            browser.click(f"#input-{place}")
            browser.evaluate(f"document.getElementById('input-{place}').select()")
            browser.call("Input.insertText", text=repr(value))
        answer = browser.evaluate(
            "(() => { const e = document.getElementById('live-answer');"
            "return {...e.dataset, text: e.innerText}; })()"
        )
        assert isinstance(answer, dict)
        width = question.high - question.low
        for name in ("mean", "low", "high"):
            wanted, said = getattr(question, name), float(answer[name])
            # Draws are in single precision: a millionth of the interval is not seen.
            if not abs(said - wanted) <= 1e-6 * abs(width) + 1e-12 * abs(wanted):
                wrong.append(
                    f"law {question.rank} at {question.inputs}: {name} {said!r}, not {wanted!r}"
                )
        texts = [write_as_page(getattr(question, n), question) for n in ("mean", "low", "high")]
        missing = [text for text in texts if text not in str(answer["text"])]
        if missing:
            wrong.append(f"{answer['text']!r} does not show {missing}")
    # By the keyboard: from point to point of the front.
    browser.evaluate("document.querySelector('#live-front .mark[tabindex=\"0\"]').focus()")
    before = browser.evaluate("document.getElementById('live-choice').value")
    browser.press("ArrowRight")
    after = browser.evaluate("document.getElementById('live-choice').value")
    on_front = browser.evaluate("document.querySelectorAll('#live-front .mark').length")
    if before == after and on_front != 1:
        wrong.append("an arrow key on the front shows no other law")
    if browser.evaluate("document.activeElement.dataset.law") != after:
        wrong.append("the law shown by a key has not the focus")
    browser.press("Enter")
    browser.click("#live-families button:last-child")
    pressed = "document.querySelector('#live-families button:last-child').ariaPressed"
    if browser.evaluate(pressed) != "true":
        wrong.append("a family's bar shows no law")
    return [f"{page.name}: {what}" for what in wrong + find_events(browser, page)]


def write_as_page(value: float, question: Question) -> str:
    """Write a number as the page does."""
    from pmsr.report.digits import digits_for, short

    return short(value, digits_for(question.low, question.high))


def print_page(browser: Browser, page: Path) -> list[str]:
    """Save the open page as PDF."""
    browser.call("Emulation.clearDeviceMetricsOverride")
    pdf = browser.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
    path = OUT / f"{page.stem}.pdf"
    path.write_bytes(base64.b64decode(pdf["data"]))
    return [] if path.read_bytes().startswith(b"%PDF") else [f"{path.name}: not a PDF"]


def make_samples() -> dict[Path, list[Question]]:
    """Write reports with everything that is awkward, and say what they should predict."""
    import numpy as np
    import pandas as pd

    import pmsr
    from pmsr.data import make_data
    from pmsr.report.content import gather_content
    from pmsr.report.page import write_report
    from pmsr.result.comparison import weigh_equations
    from pmsr.result.doubts import quietly
    from pmsr.result.result import Result
    from pmsr.result.searched import from_evolution
    from pmsr.search.evolution import run_evolution
    from pmsr.settings import QUICK, Search

    pages: dict[Path, list[Question]] = {}

    def write(name: str, result: Result, **more) -> None:
        content = gather_content(result, folder=f"{name}-run", source=f"{name}.csv", **more)
        path = write_report(OUT / f"{name}.html", content)
        questions = []
        for place in range(min(3, len(result))):
            one = result[place]
            shown = content.laws.get(str(content.table.index[place]))
            if shown is None or not one.used or any(own.draws is None for own in shown.parts):
                continue
            parts = list(one.parts.values())
            for group, part in enumerate(parts or [one]):
                for share in (0.0, 0.37, 1.2):
                    low, high = part.data.X.min(axis=0), part.data.X.max(axis=0)
                    point = np.array([float(f"{v:.5g}") for v in low + share * (high - low)])
                    with quietly():
                        row = part.tabulate_at(point[None, :], 0.95).iloc[0]
                    names = [result.data.names.index(name) for name in one.used]
                    own = [one.data.names.index(name) for name in one.used]
                    inputs = dict(zip(names, point[own].tolist(), strict=True))
                    ends = row["prediction_low"], row["prediction_high"]
                    if np.isfinite([row["mean"], *ends]).all():
                        found = Question(place + 1, inputs, row["mean"], *ends)
                        questions.append(found._replace(group=group if parts else None))
        pages[path] = questions

    def find(X, y, search: Search) -> Result:
        options = {"search": search, "settings": QUICK, "random_seed": 1}
        data = make_data(X, y)
        return from_evolution(run_evolution(data, **options), data, **options)

    X, y = pmsr.load_galileo("shelf")
    operators = ("+", "*", "/", "sqrt")
    search = Search(operators=operators, generations=20, population_size=40, n_islands=2)
    write("galileo", find(X, y, search), title="Galileo's ball on the shelf")

    rng = np.random.default_rng(1)
    names = ["<script>alert(1)</script>", "speed [m/s] of a very long name & more", "$t_0$"]
    X = pd.DataFrame(rng.uniform(1.0, 3.0, (40, 3)), columns=names)
    y = 2.0 * X[names[0]] * X[names[1]] ** 2 + X[names[2]] + rng.exponential(0.5, 40)
    search = Search(operators=("+", "-", "*", "/"), generations=10, population_size=40, n_islands=2)
    doubt = "A column is called <script>alert(2)</script>."
    found = find(X, y.rename("<b>target</b>"), search)
    write("awkward", found, title="A <b>title</b> & more", warnings=[doubt])

    T, v = rng.uniform(250.0, 400.0, 40), rng.uniform(1.0, 9.0, 40)
    X = pd.DataFrame({"T [K]": T, "speed of the flow (m/s)": v})
    y = pd.Series(3.0 * v * np.sqrt(T) + rng.normal(0.0, 4.0, 40), name="heat loss [W]")
    flow = "`speed of the flow (m/s)`"
    laws = [f"c0*sqrt(`T [K]`)*{flow}", f"c0 + c1*{flow}"]
    laws += [f"c0 + c1*{flow}*`T [K]` - c2*`T [K]`**2 + c3*{flow}**2 + c4*exp(-`T [K]`/300)*{flow}"]
    write("flow", weigh_equations(laws, X, y, random_seed=1))

    x = np.linspace(0.3, 4.6, 18)
    y = pd.Series(2.0 / (5.0 - x) + rng.normal(0.0, 0.08, 18), name="gain")
    X = pd.DataFrame({"x": x})
    laws = ["c0/(c1 - x)", "c0 + c1*x", "c0*exp(c1*x)", "c0/x"]
    write("pole", weigh_equations(laws, X, y, random_seed=1))

    X = pd.DataFrame({"t": np.linspace(0.1, 6.0, 14)})
    errors = np.where(np.arange(14) % 2, 0.05, 0.2)
    decay = np.exp(-X["t"] / 2.0)
    laws = ["c0*exp(-t/c1)", "c0/(1 + c1*t)"]
    y = pd.Series(3.0 * decay + errors * rng.normal(size=14), name="A")
    write("errors", weigh_equations(laws, X, y, y_err=errors, random_seed=1))
    across = np.full(14, 0.1)
    write("both", weigh_equations(laws, X, y, y_err=errors, X_err=across, random_seed=1))
    groups = np.repeat(["brass", "<i>steel</i>", "a label that is rather long"], 8)
    rates = np.repeat([0.4, 0.9, 0.2], 8)
    X = pd.DataFrame({"t": np.tile(np.linspace(0.2, 5.0, 8), 3)})
    y = pd.Series(5.0 * np.exp(-rates * X["t"]) + rng.normal(0.0, 0.08, 24), name="A")
    write("groups", weigh_equations(laws, X, y, groups=groups, random_seed=1))
    X = pd.DataFrame({"t": np.linspace(0.1, 6.0, 14)})
    noises = {
        "poisson": rng.poisson(40.0 * decay).astype(float),
        "student": 3.0 * decay + 0.1 * rng.standard_t(4, 14),
        "proportional": 3.0 * decay * (1.0 + 0.05 * rng.normal(size=14)),
        "lognormal": 3.0 * decay * np.exp(0.05 * rng.normal(size=14)),
    }
    for noise, values in noises.items():
        y = pd.Series(values, name="A")
        settings = pmsr.Settings(noise=noise)
        write(noise, weigh_equations(laws, X, y, settings=settings, random_seed=1))
    f = np.geomspace(0.01, 100.0, 24)
    X, y = pd.DataFrame({"f [Hz]": f}), pd.Series(30.0 / f * np.exp(0.2 * rng.normal(size=24)))
    settings = pmsr.Settings(noise="lognormal")
    laws = ["c0/`f [Hz]`", "c0", "c0/(c1 + `f [Hz]`)"]
    y = y.rename("S")
    write("decades", weigh_equations(laws, X, y, settings=settings, random_seed=1))
    # Counts, or known errors, and a law without parameters.
    x = np.arange(1.0, 9.0)
    settings = pmsr.Settings(noise="poisson")
    X, y = pd.DataFrame({"x": x}), pd.Series(x**2, name="N")
    write("counted", weigh_equations(["x**2", "c0*x"], X, y, settings=settings, random_seed=1))
    return pages


def main() -> int:
    """Check the pages named on the command line, or samples."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        print("Found no chromium: nothing was checked. Install Debian's package (apt-get install")
        print("chromium), or set CHROMIUM to the path of one.")
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    named: dict[Path, list[Question]] = {Path(name): [] for name in sys.argv[1:]}
    pages = named or make_samples()
    wrong, n_answers = [], 0
    # Chromium may still write as it ends.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            for page, questions in pages.items():
                size = page.stat().st_size
                if size > MAX_BYTES:
                    wrong.append(f"{page.name}: {size:,} bytes, more than {MAX_BYTES:,}")
                for layout in WIDTHS:
                    for scheme in ("light", "dark"):
                        wrong += check(browser, page, layout, scheme)
                    wrong += check(browser, page, layout, "light", script=False)
                # In dark: the print must be light all the same.
                open_page(browser, page, WIDTHS["desk"], "dark")
                wrong += print_page(browser, page)
                if questions:
                    wrong += use(browser, page, questions)
                    n_answers += len(questions)
        finally:
            browser.close()
    for line in wrong:
        print(line)
    print(
        f"{len(pages)} reports, {n_answers} predictions compared, {len(wrong)} faults. "
        f"Look at them in {OUT}."
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
