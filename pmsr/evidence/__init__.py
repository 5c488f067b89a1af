"""The evidence of one equation: its fit, log q, its posterior and its predictions.

May import: equation, data, settings.
"""
