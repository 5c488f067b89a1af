"""``python -m pmsr``: the ``pmsr`` command."""

import sys

from pmsr.shell.cli import main

if __name__ == "__main__":
    sys.exit(main())
