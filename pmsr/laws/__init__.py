"""Laws: which equations are one, how probable each is beforehand, and what units it survives.

May import: evidence, equation, data, settings.
"""
