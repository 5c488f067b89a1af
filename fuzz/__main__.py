"""Run all attacks, or those named: ``python -m fuzz [NAME ...] [--seed S] [--scale F]``."""

import argparse
import importlib
import sys
import time

# Attack and number of inputs, at scale 1.
SIZES = {
    "strings": 20_000,
    "graphs": 20_000,
    "datasets": 2_000,
    "files": 500,
    "threads": 200,
    "kills": 20,
}


def main() -> int:
    """Attack, print what happened, and fail if anything broke."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(SIZES)}")
    parser.add_argument("--seed", type=int, default=0, help="other inputs (default 0)")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many inputs (default 1)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in SIZES]
    if unknown:
        parser.error(f"unknown attack {unknown[0]!r}; available: {', '.join(SIZES)}")
    broken = 0
    for name in arguments.names or SIZES:
        clock = time.monotonic()
        attack = importlib.import_module(f"fuzz.{name}").attack
        tally = attack(max(1, round(SIZES[name] * arguments.scale)), arguments.seed)
        outcomes = ", ".join(f"{n} {outcome}" for outcome, n in sorted(tally.outcomes.items()))
        print(
            f"{name}: {tally.tried} tried in {time.monotonic() - clock:.0f} s ({outcomes}); "
            f"slowest {tally.slowest:.2f} s; {len(tally.faults)} faults",
            flush=True,
        )
        for fault in tally.faults[:20]:
            print(f"  {fault}", flush=True)
        broken += len(tally.faults)
    print("no faults" if not broken else f"{broken} faults")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
