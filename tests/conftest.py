"""An environment that knows no network but the servers on loopback that a test asks for."""

import os
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
import tiny
from loopback import Hub, Index, Server

from course_lib import data, viz
from course_lib.data import catalogue


@pytest.fixture(autouse=True)
def _course_look() -> Iterator[None]:
    """Pictures as `Lab` has them, whichever tests this process has run before."""
    with matplotlib.rc_context():
        viz.style()
        yield


def _served(server: Server) -> Iterator[Server]:
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def closed() -> str:
    """An address where nobody listens."""
    server = Server()
    server.shutdown()
    server.server_close()
    return server.url


@pytest.fixture
def index(alone: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    server = Index()
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple/")
    yield from _served(server)
    server.go_on.set()


@pytest.fixture
def hub(alone: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    yield from _served(server)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str) -> Path:
    """An empty cache, the tiny corpus in the catalogue, and no network but what a test adds; gives the cache folder."""
    ours = {name for name in os.environ if name.startswith(("PIP_", "COURSE_", "HF_")) or "proxy" in name.lower()}
    for name in ours - {"COURSE_DEVICE"}:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{closed}/simple/")
    monkeypatch.setenv("HF_ENDPOINT", closed)
    monkeypatch.setenv("COURSE_PROFILE", "cpu")
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(catalogue.CORPORA, "tiny", tiny.corpus())
    monkeypatch.setattr(data, "_told", set())
    return tmp_path / "cache"
