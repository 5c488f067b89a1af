"""What is decided about weighed equations: which are one law, how they are ordered, which wins.

May import: evidence, equation, data, settings.
"""
