"""One HTML page about a result.

May import: plots, result and everything below.
"""
