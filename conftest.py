"""What pytest needs to know about the whole repository."""

import os
import secrets

# Half of the random configurations are new in each run. All workers share the seed; set it to repeat a run.
os.environ.setdefault("COURSE_TEST_SEED", str(secrets.randbelow(2**31)))


def pytest_report_header() -> str:
    return f"COURSE_TEST_SEED={os.environ['COURSE_TEST_SEED']}"


def pytest_collectstart(collector) -> None:
    """nbval compares plain text. Measured values stand in the HTML twin, which differs from machine to machine."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html",)
