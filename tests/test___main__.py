import subprocess
import sys

import pmsr


def test_the_package_runs_as_a_command():
    command = [sys.executable, "-m", "pmsr", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"pmsr {pmsr.__version__}\n"
