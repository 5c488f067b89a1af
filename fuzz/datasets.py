"""Random data, most of them unreasonable, against equations: a number, a reason, or a refusal."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd

import pmsr
from fuzz.tally import Tally, generator
from pmsr.equation.grammar import quoted
from pmsr.evidence.evidence import Evidence
from pmsr.result.comparison import weigh_equations
from pmsr.settings import QUICK, Settings

N_JOBS = 2
# Of CPU, the limit for one input. Nothing here should take a second; a search over minima and a
# bridge that fails may take some.
MAX_SECONDS = 10.0
FEW = Settings(n_draws=400, n_particles=100, n_multistarts=3)
SEARCH = Settings(n_draws=QUICK.n_draws, n_multistarts=QUICK.n_multistarts, thorough=False)

# a, b stand for columns.
EQUATIONS = (
    "c0",
    "a",
    "2*a - 1",
    "exp(a)",
    "1/(a - b)",
    "log(a)",
    "c0*a",
    "c0 + c1*a",
    "c0 + c1*a + c2*b",
    "c0 + c1*a + c2*a**2 + c3*a**3",
    "c0*a*b",
    "c0*a/b",
    "c0*a**7",
    "c0*sqrt(a)",
    "c0*abs(a)**(1/3)",
    "c0*log(abs(a)) + c1",
    "c0*exp(a) + c1",
    "c0*exp(c1*a)",
    "c0*exp(c1*a) + c2",
    "c0*exp(c1*a) + c2*exp(b)",
    "c0/(c1 + a)",
    "c0*a**2/(1 + c1*a)",
    "c0*a**c1",
    "c0*abs(a)**c1 + c2",
    "c0*sin(c1*a + c2)",
    "sin(c0*a)",
    "c0*sin(a) + c1*cos(b)",
    "c0*tanh(c1*a) + c2*b",
    "log(abs(c0*a + c1))",
    "sqrt(c0*a + c1*b)",
    "c0*c1*a + c2",
    "(c0 + c1*a)/(c2 + c3*a)",
    "exp(exp(c0*a))",
    "c0**2 + c1*a",
    "a + c0*(a - abs(a))",
)
NAMES = ("x", "drop height", "T/K", "c0", "sin", "π", "a`b", "1", "=cmd|x", "x y\tz", "", 3, None)


def attack(n: int, seed: int) -> Tally:
    """Weigh n equations, each on data of its own; now and then compare, sample and predict."""
    size = -(-n // N_JOBS)
    parts = [range(start, min(start + size, n)) for start in range(0, n, size)]
    found = joblib.Parallel(N_JOBS)(joblib.delayed(_attack_part)(part, seed) for part in parts)
    tally = Tally("datasets")
    for part in found:
        tally.join(part)
    return tally


def _attack_part(places: range, seed: int) -> Tally:
    tally = Tally("datasets")
    for settings in (FEW, SEARCH):  # compiled before the clock runs
        for text in EQUATIONS:
            x = np.linspace(1.0, 2.0, 9)
            data = pd.DataFrame({"a": x, "b": np.cos(9 * x)})
            pmsr.compute_evidence(text, data, x + np.sin(7 * x), settings=settings, random_seed=1)
    for place in places:
        rng = generator(seed, place)
        X, y, kind = make_dataset(rng)
        text = make_equation(X, rng)

        def call(X: Any = X, y: Any = y, text: str = text, place: int = place) -> str:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                # Our own words to whoever calls; those of NumPy from the depths are faults.
                warnings.filterwarnings("ignore", category=UserWarning, module=__name__)
                return use(text, X, y, place)

        tally.attempt(f"{place} {text!r} on {kind}", call, MAX_SECONDS)
    return tally


def use(text: str, X: Any, y: Any, place: int) -> str:
    """Do what a user does with an equation and data; name the outcome, or raise."""
    settings = SEARCH if place % 4 == 0 else FEW
    try:
        evidence = pmsr.compute_evidence(text, X, y, settings=settings, random_seed=place)
    except ValueError as error:
        return _refused(error)
    check(evidence)
    if place % 10 == 1:
        _compare(text, X, y, place)
    if place % 5 == 2:
        _predict(text, X, y, place, evidence)
    return "weighed" if evidence.failure is None else f"failed ({evidence.failure.split(':')[0]})"


def check(evidence: Evidence) -> None:
    """Raise unless an evidence is a number, all of whose companions are, or has a reason."""
    if evidence.failure is not None:
        if not evidence.failure.strip() or evidence.log_q != -np.inf:
            raise AssertionError(f"failure {evidence.failure!r} with log q {evidence.log_q}")
        return
    numbers = {name: getattr(evidence, name) for name in ("log_q", "log_q_se", "gamma", "rmse")}
    numbers |= {"prior_sensitivity": evidence.prior_sensitivity}
    numbers |= {f"theta[{k}]": value for k, value in enumerate(evidence.theta)}
    numbers |= {"sigma": evidence.sigma_bounds[0], "sigma_max": evidence.sigma_bounds[1]}
    for name, value in numbers.items():
        if not np.isfinite(value):
            raise AssertionError(f"{name} is {value} without a failure")
    if np.isnan(evidence.pareto_k) or evidence.log_q_se < 0.0 or evidence.rmse < 0.0:
        raise AssertionError(f"not what they can be: {evidence}")


def _refused(error: Exception) -> str:
    """Accept an error of our own making."""
    if len(str(error)) < 20:
        raise AssertionError(f"says too little: {error!r}") from error
    return "refused"


def _compare(text: str, X: Any, y: Any, place: int) -> None:
    result = weigh_equations([text, "c0 + 1"], X, y, settings=FEW, random_seed=place)
    for one in result.equations:
        check(one.evidence)
    table = result.table
    if not np.isfinite(table["probability"]).all() or table["log_q"].isna().any():
        raise AssertionError(f"not numbers: {table[['log_q', 'probability']]}")
    for doubt in result.warnings:
        if "nan" in doubt.split():
            raise AssertionError(doubt)


def _predict(text: str, X: Any, y: Any, place: int, evidence: Evidence) -> None:
    try:
        posterior = pmsr.sample_posterior(
            text, X, y, settings=FEW, random_seed=place, draws=100, chains=2
        )
    except ValueError as error:
        # What can be weighed with few draws can mostly, not always, be sampled.
        _refused(error)
        return
    for name, draws in posterior.posterior.data_vars.items():
        if not np.isfinite(draws).all():
            raise AssertionError(f"draws of {name} are not finite")
    numbers = pmsr.predict(posterior, X).drop(columns="map")
    whole = np.isfinite(numbers).all(axis=1)
    if evidence.failure is None and not whole.all():
        # Finite at the best fit on all rows, so that most draws should be, too.
        raise AssertionError(f"predictions at the data: {numbers[~whole].iloc[0].to_dict()}")
    ordered = numbers["credible_low"] <= numbers["credible_high"]
    ordered &= numbers["prediction_low"] <= numbers["prediction_high"]
    if not (ordered & (numbers["std"] > 0.0))[whole].all():
        raise AssertionError("an interval upside down, or a standard deviation of zero")


def make_equation(X: Any, rng: np.random.Generator) -> str:
    """Choose a form, with the names of columns in it."""
    form = str(rng.choice(EQUATIONS))
    names = [f"x{k}" for k in range(X.shape[1] if np.ndim(X) == 2 else 1)]
    if isinstance(X, pd.DataFrame):
        names = [quoted(str(name)) for name in X.columns]
    columns = {letter: str(rng.choice(names)) for letter in ("a", "b")}
    return re.sub(r"\b[ab]\b", lambda found: columns[found.group()], form)


def make_dataset(rng: np.random.Generator) -> tuple[Any, Any, str]:
    """Draw a dataset, and tell what is peculiar about it."""
    n, d = round(np.exp(rng.uniform(0.0, np.log(200.0)))), int(rng.integers(1, 5))
    X = rng.choice([_uniform, _normal, _wide])(n, d, rng)
    y = _target(X, rng)
    told = [f"{n} x {d}"]
    for _ in range(int(rng.choice([0, 1, 1, 2, 3]))):
        name = str(rng.choice(list(PECULIAR)))
        with np.errstate(all="ignore"):
            X, y = PECULIAR[name](X, y, rng)
        told.append(name)
    if rng.random() < 0.3:
        name = str(rng.choice(list(CONTAINERS)))
        with np.errstate(all="ignore"):
            X, y = CONTAINERS[name](X, y, rng)
        told.append(name)
    return X, y, ", ".join(told)


def _uniform(n: int, d: int, rng: np.random.Generator) -> Any:
    return rng.uniform(0.5, 3.0, (n, d))


def _normal(n: int, d: int, rng: np.random.Generator) -> Any:
    return rng.standard_normal((n, d))


def _wide(n: int, d: int, rng: np.random.Generator) -> Any:
    return rng.choice([-1.0, 1.0], (n, d)) * 10.0 ** rng.uniform(-6, 6, (n, d))


def _target(X: Any, rng: np.random.Generator) -> Any:
    first, last = X[:, 0], X[:, -1]
    noise = rng.standard_normal(len(X)) * 10.0 ** rng.uniform(-8, 1)
    kinds = (noise, 2.0 + first, np.sin(first) + noise, first**2 - last + noise, 20.0 + noise)
    return kinds[int(rng.integers(len(kinds)))].copy()


def _power(rng: np.random.Generator, most: float) -> float:
    return float(10.0 ** rng.uniform(-most, most))


def _rows(X: Any, y: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    rows = rng.integers(0, len(y), len(y))
    return X[rows], y[rows]


def _column(X: Any, y: Any, rng: np.random.Generator, value: Any) -> tuple[Any, Any]:
    X = X.copy()
    column = int(rng.integers(X.shape[1]))
    X[:, column] = value(X[:, column])
    return X, y


def _spot(X: Any, y: Any, rng: np.random.Generator, value: float) -> tuple[Any, Any]:
    """Replace one number, of X or of y."""
    X, y = X.copy(), y.copy()
    if rng.random() < 0.5:
        y[rng.integers(len(y))] = value
    else:
        X[rng.integers(len(X)), rng.integers(X.shape[1])] = value
    return X, y


def _frame(X: Any, y: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    names = [NAMES[k] for k in rng.permutation(len(NAMES))[: X.shape[1]]]
    table = pd.DataFrame(X, columns=pd.Index(names, dtype=object))
    return table, pd.Series(y, name=NAMES[int(rng.integers(len(NAMES)))])


def _mixed(X: Any, y: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    columns = {f"x{k}": values for k, values in enumerate(X.T)}
    table = pd.DataFrame(columns)
    odd = (
        lambda v: v.astype(str),
        lambda v: pd.Categorical(v),
        lambda v: v.astype(bool),
        lambda v: v.astype(np.float32),
        lambda v: v.astype(object),
        lambda v: pd.array(v, dtype="Float64"),
        lambda v: pd.to_datetime(np.arange(len(v))),
        lambda v: v + 1j,
    )
    table["x0"] = odd[int(rng.integers(len(odd)))](table["x0"].to_numpy())
    return table, y


Change = Callable[[Any, Any, np.random.Generator], tuple[Any, Any]]

PECULIAR: dict[str, Change] = {
    "y scaled": lambda X, y, rng: (X, y * _power(rng, 300)),
    "y scaled within reason": lambda X, y, rng: (X, y * _power(rng, 95)),
    "x scaled": lambda X, y, rng: (X * _power(rng, 300), y),
    "columns scaled": lambda X, y, rng: _column(X, y, rng, lambda v: v * _power(rng, 95)),
    "offset of y": lambda X, y, rng: (X, y + _power(rng, 14)),
    "offset of a column": lambda X, y, rng: _column(X, y, rng, lambda v: v + _power(rng, 16)),
    "duplicate rows": _rows,
    "constant column": lambda X, y, rng: _column(X, y, rng, lambda v: np.full(len(v), v[0])),
    "zero column": lambda X, y, rng: _column(X, y, rng, lambda v: 0.0 * v),
    "two columns alike": lambda X, y, rng: _column(X, y, rng, lambda v: X[:, 0]),
    "x rounded": lambda X, y, rng: (np.rint(X), y),
    "y rounded": lambda X, y, rng: (X, np.rint(y)),
    "an outlier": lambda X, y, rng: _spot(X, y, rng, 1e12),
    "a huge outlier": lambda X, y, rng: _spot(X, y, rng, _power(rng, 300)),
    "a zero": lambda X, y, rng: _spot(X, y, rng, 0.0),
    "NaN": lambda X, y, rng: _spot(X, y, rng, np.nan),
    "inf": lambda X, y, rng: _spot(X, y, rng, float(rng.choice([-np.inf, np.inf]))),
    "tiny variance": lambda X, y, rng: (X, y[0] + 10.0 ** rng.uniform(-15, -8) * y),
    "y exactly linear": lambda X, y, rng: (X, 3.0 - 2.0 * X[:, 0]),
    "y equals a column": lambda X, y, rng: (X, X[:, -1].copy()),
}
CONTAINERS: dict[str, Change] = {
    "integers": lambda X, y, rng: (np.rint(X).astype(np.int64), np.rint(y).astype(np.int64)),
    "float32": lambda X, y, rng: (X.astype(np.float32), y.astype(np.float32)),
    "objects": lambda X, y, rng: (X.astype(object), y.astype(object)),
    "strings": lambda X, y, rng: (X.astype(str), y),
    "strings in y": lambda X, y, rng: (X, y.astype(str)),
    "y of another length": lambda X, y, rng: (X, y[:-1]),
    "y as a column": lambda X, y, rng: (X, y[:, None]),
    "Fortran order": lambda X, y, rng: (np.asfortranarray(X), y[::-1][::-1]),
    "table": _frame,
    "mixed types": _mixed,
}
