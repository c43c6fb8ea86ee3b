"""The student's progress: one JSON file, ``progress.json`` in the folder of the notebooks (or ``COURSE_PROGRESS``).

Written atomically, so that a killed kernel loses nothing. A damaged file is set aside, never a crash. A folder that
cannot be written to costs the record, not the lesson.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout


def path() -> Path:
    """Where the progress is kept."""
    return Path(os.environ.get("COURSE_PROGRESS") or "progress.json").absolute()


def read() -> tuple[dict, str]:
    """The whole record, ``{lesson: {...}}``, and a notice (empty when all is well)."""
    file = path()
    if _unfit(file):
        return {}, _unfit(file)
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        if _whole(record):
            return record, ""
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"{file} cannot be read ({error.strerror}); this session starts with an empty record."
    except ValueError:
        pass
    aside = file.with_name(f"{file.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}.json")
    try:
        file.replace(aside)
    except OSError:
        return {}, f"{file.name} is damaged and could not be moved; this session starts with an empty record."
    return {}, f"{file.name} was damaged; it now lies beside it as {aside.name}, and a new record is begun."


def update(lesson: str, change: Callable[[dict], None]) -> str:
    """Apply ``change`` to the record of ``lesson`` and save; returns a notice (empty when all is well)."""
    file = path()
    if _unfit(file):
        return _unfit(file)
    try:
        with FileLock(file.with_name(f".{file.name}.lock"), timeout=5):  # two notebooks may be open at once
            record, notice = read()
            change(record.setdefault(lesson, {}))
            _write(file, json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True))
    except (OSError, Timeout) as error:
        reason = getattr(error, "strerror", None) or "another program holds it"
        return f"Your progress could not be saved to {file} ({reason}); the lesson goes on."
    return notice


def _unfit(file: Path) -> str:
    """Why the path cannot hold a record: a folder or a device such as /dev/null must never be moved or replaced."""
    return f"{file} is not a regular file; your progress is not saved." if file.exists() and not file.is_file() else ""


def _whole(record: object) -> bool:
    """Whether it has the form of a record: {lesson: {exercises: {id: {state, attempts}}, guesses: {}, claims: {}}}."""
    if not isinstance(record, dict) or not all(isinstance(lesson, dict) for lesson in record.values()):
        return False
    parts = [lesson.get(part, {}) for lesson in record.values() for part in ("exercises", "guesses", "claims")]
    if not all(isinstance(part, dict) for part in parts):
        return False
    attempts = [entry for lesson in record.values() for entry in lesson.get("exercises", {}).values()]
    return all(isinstance(entry, dict) and {"state", "attempts"} <= entry.keys() for entry in attempts)


def _write(file: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
