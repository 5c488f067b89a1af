"""The ``pmsr`` command: its arguments, the files it reads and the folders it leaves.

May import: everything.
"""
