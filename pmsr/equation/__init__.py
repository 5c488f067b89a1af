"""Equations: as text, as algebra, as integer tables that compiled loops evaluate.

May import: data, settings and what stands beside them.
"""
