"""Laws of science, and noisy data of them: the problems of the calibration study.

python benchmarks/laws_of_science.py     prints the list

The list is fixed before any study is run on it. In the order in which it is written, the first,
third, fifth, ... law is for training (costs may be chosen on it), the others are for testing.
"""

from dataclasses import dataclass

import numpy as np

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate

NOISE = (0.02, 0.30)  # of the standard deviation of y, even in its logarithm
ROWS = (8, 60)  # number of rows, even in its logarithm


@dataclass(frozen=True)
class Law:
    """A law, where it is measured, and what its constants typically are.

    Parameters
    ----------
    name
        What it is called.
    text
        The law; constants of nature and of the apparatus are parameters.
    columns
        Lowest value, highest value and unit of every column.
    target
        Name and unit of what is measured.
    constants
        Typical values of c0, c1, ..., in these units.
    """

    name: str
    text: str
    columns: dict[str, tuple[float, float, str]]
    target: tuple[str, str]
    constants: tuple[float, ...] = ()

    @property
    def equation(self):
        """The law as an Equation."""
        return Equation(self.text, list(self.columns))

    @property
    def units(self):
        """Units of columns and target; those that are written alike are shared."""
        return {name: unit for name, (_, _, unit) in self.columns.items()} | dict([self.target])

    @property
    def is_for_training(self):
        """Whether costs may be chosen on it."""
        return LAWS.index(self) % 2 == 0


def make(law, seed):
    """Draw noise, number of rows and constants for a seed; return the data and what was drawn.

    Constants are within a factor of two of typical ones, columns even over their ranges, or in
    their logarithms where these span more than a factor of 30.
    """
    rng = np.random.default_rng([seed, *law.name.encode()])
    noise = float(np.exp(rng.uniform(*np.log(NOISE))))
    n = round(float(np.exp(rng.uniform(*np.log(ROWS)))))
    truth = np.array(law.constants) * 2.0 ** rng.uniform(-1.0, 1.0, size=len(law.constants))
    columns = []
    for low, high, _ in law.columns.values():
        if low > 0.0 and high > 30.0 * low:
            columns.append(np.exp(rng.uniform(np.log(low), np.log(high), size=n)))
        else:
            columns.append(rng.uniform(low, high, size=n))
    X = np.column_stack(columns)
    y = evaluate(law.equation.program, truth[None, :], X)[0]
    measured = y + noise * np.std(y) * rng.normal(size=n)
    data = make_data(X, measured, names=list(law.columns))
    return data, {"noise": noise, "n": n, "truth": truth}


LAWS = (
    # one variable
    Law("Galileo's shelf", "c0*sqrt(H)", {"H": (100, 1000, "mm")}, ("D", "mm"), (47.0,)),
    Law("free fall", "c0*t**2", {"t": (0.1, 2, "s")}, ("s", "m"), (4.9,)),
    Law("pendulum", "c0*sqrt(L)", {"L": (0.1, 3, "m")}, ("T", "s"), (2.0,)),
    Law("Hooke", "c0*x", {"x": (1, 20, "cm")}, ("F", "N"), (0.5,)),
    Law(
        "Michaelis-Menten",
        "c0*S/(c1 + S)",
        {"S": (0.05, 10, "µM")},
        ("v", "µM/s"),
        (2.0, 1.0),
    ),
    Law(
        "radioactive decay",
        "c0*exp(-c1*t)",
        {"t": (0, 30, "min")},
        ("A", "Bq"),
        (800.0, 0.1),
    ),
    Law(
        "Newton's cooling",
        "c0 + c1*exp(-c2*t)",
        {"t": (0, 60, "min")},
        ("T", "K"),
        (295.0, 60.0, 0.06),
    ),
    Law(
        "Arrhenius",
        "c0*exp(-c1/T)",
        {"T": (280, 400, "K")},
        ("k", "1/s"),
        (1e9, 6000.0),
    ),
    Law("Kepler", "c0*a**(3/2)", {"a": (0.4, 30, "au")}, ("T", "year"), (1.0,)),
    Law("Boyle", "c0/V", {"V": (5, 50, "mL")}, ("p", "kPa"), (1500.0,)),
    Law(
        "Charles",
        "c0*(t + c1)",
        {"t": (0, 100, "degC")},
        ("V", "mL"),
        (0.2, 273.0),
    ),
    Law("Stefan-Boltzmann", "c0*T**4", {"T": (300, 1500, "K")}, ("P", "W"), (5e-8,)),
    Law(
        "Planck",
        "c0/(L**5*(exp(c1/L) - 1))",
        {"L": (0.3, 3, "µm")},
        ("B", "W/m^2"),
        (100.0, 2.5),
    ),
    Law("Wien", "c0/T", {"T": (1000, 8000, "K")}, ("L", "µm"), (2898.0,)),
    Law("Kleiber", "c0*m**(3/4)", {"m": (0.02, 4000, "kg")}, ("P", "W"), (3.4,)),
    Law("Beer-Lambert", "c0*exp(-c1*d)", {"d": (0, 10, "cm")}, ("I", "mW"), (5.0, 0.3)),
    Law("Ohm", "c0*U", {"U": (0.5, 12, "V")}, ("I", "A"), (0.2,)),
    Law(
        "resistance of a metal",
        "c0 + c1*t",
        {"t": (0, 200, "degC")},
        ("R", "ohm"),
        (100.0, 0.4),
    ),
    Law(
        "Hill",
        "c0*L**2/(c1**2 + L**2)",
        {"L": (0.1, 20, "nM")},
        ("B", "nM"),
        (5.0, 2.0),
    ),
    Law(
        "charging a capacitor",
        "c0*(1 - exp(-t/c1))",
        {"t": (0, 10, "s")},
        ("U", "V"),
        (9.0, 2.5),
    ),
    Law(
        "logistic growth",
        "c0/(1 + c1*exp(-c2*t))",
        {"t": (0, 24, "h")},
        ("N", "count/mL"),
        (600.0, 40.0, 0.5),
    ),
    Law(
        "Gompertz",
        "c0*exp(-c1*exp(-c2*t))",
        {"t": (0, 30, "day")},
        ("V", "mm^3"),
        (900.0, 5.0, 0.2),
    ),
    Law("Weber-Fechner", "c0 + c1*log(I)", {"I": (1, 1000, "lx")}, ("S", "1"), (1.0, 0.6)),
    Law("Stevens", "c0*I**c1", {"I": (1, 1000, "lx")}, ("S", "1"), (1.0, 0.4)),
    Law("Freundlich", "c0*p**c1", {"p": (0.1, 50, "kPa")}, ("q", "mmol"), (1.2, 0.45)),
    Law("Langmuir", "c0*p/(c1 + p)", {"p": (0.1, 50, "kPa")}, ("q", "mmol"), (4.0, 8.0)),
    Law(
        "damped oscillation",
        "c0*exp(-c1*t)*cos(c2*t)",
        {"t": (0, 12, "s")},
        ("x", "cm"),
        (5.0, 0.15, 2.0),
    ),
    Law(
        "simple oscillation",
        "c0*sin(c1*t + c2)",
        {"t": (0, 10, "s")},
        ("x", "cm"),
        (4.0, 1.5, 0.6),
    ),
    Law("Malus", "c0*cos(phi)**2", {"phi": (0, 1.57, "rad")}, ("I", "mW"), (3.0,)),
    Law("drag", "c0*v**2", {"v": (2, 30, "m/s")}, ("F", "N"), (0.3,)),
    Law(
        "braking distance",
        "c0*v + c1*v**2",
        {"v": (5, 40, "m/s")},
        ("d", "m"),
        (1.0, 0.07),
    ),
    Law(
        "terminal velocity approached",
        "c0*tanh(t/c1)",
        {"t": (0, 12, "s")},
        ("v", "m/s"),
        (40.0, 4.0),
    ),
    Law("Hubble", "c0*d", {"d": (1, 400, "Mpc")}, ("v", "km/s"), (70.0,)),
    Law(
        "Antoine",
        "c0*exp(-c1/(c2 + t))",
        {"t": (10, 100, "degC")},
        ("p", "kPa"),
        (1.6e7, 3900.0, 230.0),
    ),
    Law(
        "Galileo's ramp without shelf",
        "D**2/(c0 - c1*D)",
        {"D": (50, 350, "mm")},
        ("H", "mm"),
        (900.0, 0.5),
    ),
    Law(
        "Ricker",
        "c0*S*exp(-c1*S)",
        {"S": (1, 40, "t")},
        ("R", "t"),
        (3.0, 0.06),
    ),
    # two variables
    Law(
        "thin lens",
        "u*f/(u - f)",
        {"u": (30, 100, "cm"), "f": (5, 20, "cm")},
        ("v", "cm"),
    ),
    Law(
        "resistors in parallel",
        "R1*R2/(R1 + R2)",
        {"R1": (10, 100, "ohm"), "R2": (10, 100, "ohm")},
        ("R", "ohm"),
    ),
    Law(
        "Pythagoras",
        "sqrt(a**2 + b**2)",
        {"a": (1, 10, "m"), "b": (1, 10, "m")},
        ("c", "m"),
    ),
    Law(
        "Stokes",
        "c0*(d1 - d2)",
        {"d1": (1.5, 8, "g/cm^3"), "d2": (0.7, 1.3, "g/cm^3")},
        ("v", "cm/s"),
        (0.8,),
    ),
    Law(
        "radiative exchange",
        "c0*(T1**4 - T2**4)",
        {"T1": (500, 900, "K"), "T2": (280, 480, "K")},
        ("P", "W"),
        (5e-8,),
    ),
    Law(
        "Nernst",
        "c0 + c1*log(a/b)",
        {"a": (0.01, 10, "mM"), "b": (0.01, 10, "mM")},
        ("E", "mV"),
        (300.0, 25.0),
    ),
    Law(
        "Rydberg",
        "c0*(1/m**2 - 1/n**2)",
        {"m": (1, 2.9, "1"), "n": (3, 8, "1")},
        ("k", "1/µm"),
        (10.97,),
    ),
    Law(
        "speed of a wave on a string",
        "sqrt(F/m)",
        {"F": (10, 200, "N"), "m": (0.001, 0.02, "kg/m")},
        ("v", "m/s"),
    ),
    Law(
        "speed of sound in a gas",
        "c0*sqrt(p/d)",
        {"p": (80, 120, "kPa"), "d": (0.2, 2, "kg/m^3")},
        ("v", "m/s"),
        (37.0,),
    ),
    Law(
        "Doppler",
        "f*(1 + v/c0)",
        {"f": (200, 2000, "Hz"), "v": (5, 60, "m/s")},
        ("g", "Hz"),
        (343.0,),
    ),
    Law(
        "centripetal force",
        "c0*v**2/r",
        {"v": (1, 10, "m/s"), "r": (0.2, 3, "m")},
        ("F", "N"),
        (0.4,),
    ),
    Law(
        "kinetic energy",
        "m*v**2/2",
        {"m": (0.2, 5, "kg"), "v": (1, 12, "m/s")},
        ("E", "J"),
    ),
    Law(
        "Coulomb between charged spheres",
        "c0*q/r**2",
        {"q": (1, 20, "nC"), "r": (2, 15, "cm")},
        ("F", "µN"),
        (60.0,),
    ),
    Law(
        "competitive inhibition",
        "c0*S/(c1*(1 + I/c2) + S)",
        {"S": (0.1, 20, "µM"), "I": (0, 10, "µM")},
        ("v", "µM/s"),
        (3.0, 2.0, 1.5),
    ),
    Law(
        "Cobb-Douglas",
        "c0*L**c1*K**c2",
        {"L": (1, 50, "h"), "K": (1, 50, "kg")},
        ("Y", "kg"),
        (1.5, 0.7, 0.3),
    ),
    Law(
        "Snell",
        "sin(a)/n",
        {"a": (0.1, 1.4, "rad"), "n": (1.2, 2.4, "1")},
        ("s", "1"),
    ),
    Law(
        "range of a projectile",
        "c0*v**2*sin(2*a)",
        {"v": (5, 30, "m/s"), "a": (0.1, 1.4, "rad")},
        ("d", "m"),
        (0.1,),
    ),
    Law(
        "Torricelli",
        "c0*A*sqrt(h)",
        {"A": (0.1, 2, "cm^2"), "h": (2, 80, "cm")},
        ("Q", "cm^3/s"),
        (30.0,),
    ),
    Law(
        "relativistic addition of velocities",
        "(u + v)/(1 + u*v)",
        {"u": (0.1, 0.9, "1"), "v": (0.1, 0.9, "1")},
        ("w", "1"),
    ),
    Law(
        "reduced mass",
        "m1*m2/(m1 + m2)",
        {"m1": (1, 40, "kg"), "m2": (1, 40, "kg")},
        ("m", "kg"),
    ),
    # three variables
    Law(
        "Newton's gravitation",
        "c0*m1*m2/r**2",
        {"m1": (1, 20, "kg"), "m2": (1, 20, "kg"), "r": (0.5, 4, "m")},
        ("F", "nN"),
        (0.067,),
    ),
    Law(
        "ideal gas",
        "c0*n*T/V",
        {"n": (0.1, 3, "mol"), "T": (250, 450, "K"), "V": (2, 40, "L")},
        ("p", "kPa"),
        (8.314,),
    ),
    Law(
        "deflection of a beam",
        "c0*F*L**3/b",
        {"F": (1, 20, "N"), "L": (0.2, 1, "m"), "b": (5, 40, "mm")},
        ("w", "mm"),
        (8.0,),
    ),
    Law(
        "Poiseuille",
        "c0*p*r**4/L",
        {"p": (1, 10, "kPa"), "r": (0.3, 2, "mm"), "L": (5, 50, "cm")},
        ("Q", "mL/s"),
        (3.0,),
    ),
    Law(
        "Fourier's heat flow",
        "c0*(T1 - T2)/d",
        {"T1": (310, 400, "K"), "T2": (270, 300, "K"), "d": (1, 20, "cm")},
        ("q", "W"),
        (4.0,),
    ),
    Law(
        "lensmaker",
        "c0*(1/R1 - 1/R2)",
        {"R1": (5, 20, "cm"), "R2": (25, 90, "cm")},
        ("P", "1/cm"),
        (0.5,),
    ),
    Law(
        "motion with constant acceleration",
        "s + v*t + c0*t**2",
        {"s": (0, 20, "m"), "v": (1, 10, "m/s"), "t": (0.2, 5, "s")},
        ("x", "m"),
        (2.0,),
    ),
    Law(
        "Goldman, two ions",
        "c0*log((a + c1*b)/d)",
        {"a": (1, 20, "mM"), "b": (50, 150, "mM"), "d": (80, 160, "mM")},
        ("E", "mV"),
        (25.0, 0.05),
    ),
    Law(
        "mixing of two waters",
        "(m1*T1 + m2*T2)/(m1 + m2)",
        {
            "m1": (0.1, 2, "kg"),
            "T1": (320, 370, "K"),
            "m2": (0.1, 2, "kg"),
            "T2": (275, 300, "K"),
        },
        ("T", "K"),
    ),
    # four variables
    Law(
        "inelastic collision",
        "(m1*v1 + m2*v2)/(m1 + m2)",
        {
            "m1": (0.5, 5, "kg"),
            "v1": (1, 10, "m/s"),
            "m2": (0.5, 5, "kg"),
            "v2": (-10, -1, "m/s"),
        },
        ("v", "m/s"),
    ),
    Law(
        "heat through a wall",
        "c0*A*(T1 - T2)/d",
        {
            "A": (1, 20, "m^2"),
            "T1": (290, 300, "K"),
            "T2": (255, 285, "K"),
            "d": (5, 40, "cm"),
        },
        ("P", "W"),
        (4.0,),
    ),
    Law(
        "Darcy-Weisbach",
        "c0*L*d*v**2/D",
        {
            "L": (1, 50, "m"),
            "d": (700, 1300, "kg/m^3"),
            "v": (0.3, 4, "m/s"),
            "D": (1, 20, "cm"),
        },
        ("p", "kPa"),
        (0.001,),
    ),
)


if __name__ == "__main__":
    for law in LAWS:
        print(
            "train" if law.is_for_training else "test ", f"{law.name}: {law.target[0]} = {law.text}"
        )
