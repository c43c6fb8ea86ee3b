"""What pytest needs to know about the whole repository."""


def pytest_collectstart(collector) -> None:
    """nbval compares plain text. Measured values stand in the HTML twin, which differs from machine to machine."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html",)
