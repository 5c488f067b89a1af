"""What a line gains by redundant parameters: nothing, or less than 0.3 nats.

python benchmarks/redundant.py [--quick]

In the paper's own implementation c0 + c1*(c2 - x) gains 7 to 14 nats over c0 + c1*x.
"""

import numpy as np
import pandas as pd
import report

import pmsr
from pmsr.settings import FINALIST, Settings

ASKED = 0.3
LINE = "c0 + c1*x0"
FORMS = [
    "c0 + c1*(c2 - x0)",
    "c0 + c1 + c2*x0",
    "c0*(c1 + c2*x0)",
    "c0*c1*x0 + c2",
    "(c0 + c1*x0)*c2/c3",
    # Algebra cannot see these; on positive x they are lines.
    "c0 + c1*x0 + c2*abs(x0)",
    "c0 + c1*x0 + c2*tanh(40 + x0)",
]


def make_datasets():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, 20)
    line = pd.DataFrame({"x0": x}), 1 + 2 * x + 0.5 * rng.standard_normal(20)
    small = pd.DataFrame({"x0": x[:7]}), line[1][:7]
    return {
        "sine, N = 20": pmsr.make_sine(n_points=20, sigma=0.5, random_seed=2),
        "line, N = 20": line,
        "line, N = 7": small,
    }


def main(quick):
    n_seeds = 3 if quick else 20
    settings = {"default": Settings()} | ({} if quick else {"finalist": FINALIST})
    cases = [(data, name, text) for data in make_datasets() for name in settings for text in FORMS]
    rows = []
    for data, name, text in report.track(cases, len(cases), "weighing redundant lines"):
        X, y = make_datasets()[data]
        line, form = pmsr.Equation(LINE, ["x0"]), pmsr.Equation(text, ["x0"])
        gains = [
            pmsr.compute_evidence(form, X, y, settings=settings[name], random_seed=seed).log_q
            - pmsr.compute_evidence(line, X, y, settings=settings[name], random_seed=seed).log_q
            for seed in range(n_seeds)
        ]
        rows.append(
            {
                "data": data,
                "settings": name,
                "equation": text,
                "same_key": form.key == line.key,
                "gain": np.mean(gains),
                "largest_gain": np.max(np.abs(gains)),
                "ok": np.max(np.abs(gains)) <= ASKED,
            }
        )
    frame = pd.DataFrame(rows)
    formats = {"gain": "+.4f", "largest_gain": ".4f"}
    shown = frame.groupby(["settings", "equation"], sort=False, as_index=False).agg(
        same_key=("same_key", "all"),
        gain=("gain", "mean"),
        largest_gain=("largest_gain", "max"),
        ok=("ok", "all"),
    )
    title = f"Gain over {LINE} in nats, three datasets, {n_seeds} seeds each"
    report.show(title, shown, formats)
    report.save("redundant", frame, quick)
    return report.judge(f"largest gain of any run <= {ASKED}", frame["ok"].to_list())


if __name__ == "__main__":
    report.run(main, __doc__)
