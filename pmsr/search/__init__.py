"""The search for equations: graphs that vary, crowd each other out and are kept.

May import: laws, evidence, equation, data, settings.
"""
