import pytest

from course_lib import runtime


@pytest.fixture(autouse=True)
def one_thread():
    with runtime.threads(1):
        yield
