"""The devices of the parity tests, and the table of what they saw: ``pytest tests/parity --matrix docs/parity.md``."""

from dataclasses import asdict, fields
from importlib import metadata
from pathlib import Path

import comparing
import pytest
import torch

ROWS: dict[tuple[str, str], list[dict]] = {}  # (ours, theirs) → what each test saw


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    """Everything that the test makes is made on this device. On a GPU: CUDA or MPS, whichever there is."""
    place = torch.device("cpu") if request.param == "cpu" else torch.accelerator.current_accelerator(True)
    if place is None:
        pytest.skip("There is no GPU.")
    tf32, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False  # a rounding to 10 bits
    with torch.device(place):
        yield place
    torch.backends.cudnn.allow_tf32 = tf32


def pytest_addoption(parser) -> None:
    parser.addoption("--matrix", metavar="FILE", help="write what was compared with what to this Markdown file")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    for field in fields(comparing.Seen):
        setattr(comparing.seen, field.name, field.default)
    result = yield
    if (mark := item.get_closest_marker("compares")) and comparing.seen.comparisons:
        item.user_properties.append(("parity", [*mark.args, asdict(comparing.seen)]))  # workers send it along
    return result


def pytest_runtest_logreport(report) -> None:
    for name, value in report.user_properties if report.when == "call" and report.passed else ():
        if name == "parity":
            ours, theirs, seen = value
            ROWS.setdefault((ours, theirs), []).append(seen)


def pytest_sessionfinish(session, exitstatus) -> None:
    file = session.config.getoption("matrix", None)
    if file and not hasattr(session.config, "workerinput"):
        if exitstatus == 0:
            Path(file).parent.mkdir(exist_ok=True)
            Path(file).write_text(table(), encoding="utf-8")
        else:
            print(f"\n{file} is not written, since not all tests passed.")


def table() -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "transformers", "tokenizers"))
    lines = [
        "# Equal to the real thing",
        "",
        "What the course builds by hand, beside the same thing of others, on the same weights and inputs. Made by",
        f"`pytest tests/parity --matrix docs/parity.md` with {versions}.",
        "",
        "A *configuration* is one test: sizes, options and a seed (`make fuzz` draws others than these). The",
        "largest difference over all of them is a share of the largest value where that is above 1; *same* means that",
        "not one token or bit differs. A test fails where a difference exceeds what is *allowed*.",
        "",
        "| ours | theirs | configurations | comparisons | allowed | largest difference | of gradients |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for (ours, theirs), tests in sorted(ROWS.items(), key=lambda row: [name.lower() for name in row[0]]):
        allowed = max(test["bound"] for test in tests)
        numbers = [shown(number) for number in (allowed, largest(tests, "values"), largest(tests, "gradients"))]
        count = sum(test["comparisons"] for test in tests)
        lines.append(f"| {ours} | {theirs} | {len(tests)} | {count} | {' | '.join(numbers)} |")
    return "\n".join(lines) + "\n"


def largest(tests: list[dict], kind: str) -> float | None:
    return max((test[kind] for test in tests if test[kind] is not None), default=None)


def shown(number: float | None) -> str:
    return "" if number is None else "same" if number == 0 else f"{number:.1e}"
