"""What was found: fitted equations in a ranked table, doubts about them, and files that keep them.

May import: search, laws, evidence, equation, data, settings.
"""
