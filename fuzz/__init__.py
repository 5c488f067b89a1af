"""Attacks on pmsr with random input, seeded and bounded: ``make fuzz``, minutes on two cores.

Each module attacks one door and has a function ``attack(n, seed) -> Tally``; `__main__` runs them.
"""
