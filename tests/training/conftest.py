import pytest

from course_lib import runtime
from course_lib.training import loop


@pytest.fixture(autouse=True)
def one_thread():
    with runtime.threads(1):
        yield


@pytest.fixture
def updates(monkeypatch) -> list[float]:
    """The gradient norm of every update made in the test: a run that goes on makes fewer than one that starts anew."""
    made, clip = [], loop.clip_gradients
    monkeypatch.setattr(loop, "clip_gradients", lambda *inputs: made.append(clip(*inputs)) or made[-1])
    return made
