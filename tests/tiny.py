"""A corpus of three lines in a wheel of a few kilobytes, for the tests; run as a script, it fetches it."""

import hashlib
import io
import os
import sys
import time
import zipfile
from pathlib import Path

from course_lib.data import catalogue
from course_lib.data.catalogue import Corpus, Twin
from course_lib.data.fetching import Wheel

LINES = ["one fish", "two fish", "red fish"]
FILE = "tiny_corpus-1.0-py3-none-any.whl"


def wheel_bytes() -> bytes:
    """A valid wheel, the same bytes each time; some of it cannot be compressed, so that it can be cut in the middle."""
    info = "tiny_corpus-1.0.dist-info"
    noise = b"".join(hashlib.sha256(bytes([i])).digest() for i in range(250)) * 40
    files = {
        "tiny/lines.txt": "\n".join(LINES).encode(),
        "tiny/noise.bin": noise,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-corpus\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def read(archive: zipfile.ZipFile) -> dict[str, dict[str, list]]:
    if marker := os.environ.get("TINY_HANGS"):  # for the test that kills this process in the middle of its work
        Path(marker).touch()
        time.sleep(60)
    return {"train": {"text": archive.read("tiny/lines.txt").decode().split("\n")}}


def corpus(sha256: str = hashlib.sha256(wheel_bytes()).hexdigest()) -> Corpus:
    return Corpus(
        name="tiny",
        about="three lines",
        licence="CC0",
        columns={"text": "string"},
        splits=("train",),
        read=read,
        wheel=Wheel("tiny-corpus", "1.0", sha256, len(wheel_bytes())),
        twin=Twin("course/tiny", splits={"train": "train"}, licence="CC0 on the hub"),
    )


if __name__ == "__main__":
    from course_lib.cli import main

    catalogue.CORPORA["tiny"] = corpus()
    sys.exit(main(["fetch", "tiny"]))
