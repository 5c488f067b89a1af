"""What every test run needs, doctests included, before anything heavy is imported."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run: red should mean that something changed. FUZZ=1 draws new ones.
settings.register_profile("same", derandomize=True)
if not os.environ.get("FUZZ"):
    settings.load_profile("same")

# Two processes that fill one Numba cache at the same time can overwrite each other's entries, so
# each pytest-xdist worker has its own.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).parent / ".cache" / "numba" / _worker)
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to other machines: a test that needs one would fail for a reader."""
    connect = socket.socket.connect

    def connect_locally(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and address[0] not in {"127.0.0.1", "::1", "localhost"}:
            raise RuntimeError(f"A test tried to connect to {address!r}.")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect_locally)
