"""The real corpora and weights, as they lie in the cache after ``python -m course_lib fetch``."""

import pytest
import torch

from course_lib.data import load, sources
from course_lib.data.catalogue import CORPORA, WEIGHTS
from course_lib.pretrained import weights


def here(name: str) -> None:
    if not sources.present((CORPORA | WEIGHTS)[name]):
        pytest.skip(f"not fetched: python -m course_lib fetch {name}")


SIZES = {
    "tiny_shakespeare": {"train": 1, "validation": 1, "test": 1},
    "tatoeba_en_es": {"train": 135_320, "validation": 2_817, "test": 2_731},
    "tatoeba_en_uk": {"train": 151_864, "validation": 3_116, "test": 3_194},
    "wikitext2": {"train": 36_718, "validation": 3_760, "test": 4_358},
    "trec": {"train": 5_442, "test": 500},
    "names": {"train": 17_327, "test": 1_941},
    "glove_50d": {"train": 400_000},
    "rotten_tomatoes": {"train": 6_861, "validation": 842, "test": 827},
    "imdb": {"train": 19_986, "test": 5_014},
    "stsb": {"train": 5_749, "validation": 1_500, "test": 1_379},
    "boolq": {"train": 9_427, "validation": 3_270},
    "disfl_qa": {"test": 1_000},
    "conll": {"test": 226},
    "cmudict": {"train": 121_626, "validation": 6_736, "test": 6_804},
}
TOTALS = {"tatoeba_en_es": 140_868, "tatoeba_en_uk": 158_174, "rotten_tomatoes": 8_530, "imdb": 25_000}
TOTALS |= {"boolq": 12_697, "cmudict": 135_166}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str) -> None:
    here(name)
    sizes = {split: len(load(name, split, quiet=True)) for split in CORPORA[name].splits}
    assert sizes == SIZES[name]
    assert sum(sizes.values()) == TOTALS.get(name, sum(sizes.values()))


@pytest.mark.parametrize("name", ["tatoeba_en_es", "trec", "names", "rotten_tomatoes", "cmudict"])
def test_nothing_is_trained_on_that_is_tested(name: str) -> None:
    here(name)
    parts = [load(name, split, quiet=True)[:] for split in CORPORA[name].splits]
    for column in {"tatoeba_en_es": ("en", "es")}.get(name, list(CORPORA[name].columns)[:1]):
        train, *others = (set(part[column]) for part in parts)
        assert not any(train & other for other in others)


def test_tiny_shakespeare_is_whole() -> None:
    here("tiny_shakespeare")
    parts = [load("tiny_shakespeare", split, quiet=True)[0]["text"] for split in ("train", "validation", "test")]
    assert len("".join(parts)) == 1_115_394
    assert [len(part) for part in parts] == [1_003_854, 55_770, 55_770]
    assert parts[0].startswith("First Citizen:\nBefore we proceed any further, hear me speak.")


def test_translations_carry_their_attribution() -> None:
    here("tatoeba_en_es")
    rows = load("tatoeba_en_es", "test", quiet=True)[:]
    assert all(source.startswith("tatoeba.org #") for source in rows["attribution"])
    parts = [load("tatoeba_en_es", split, quiet=True)[:] for split in CORPORA["tatoeba_en_es"].splits]
    pairs = (pair for part in parts for pair in zip(part["en"], part["es"], strict=True))
    assert sum(max(len(side.split()) for side in pair) <= 10 for pair in pairs) == 129_135


def test_wikitext_words() -> None:
    here("wikitext2")
    count = {s: sum(len(t.split()) for t in load("wikitext2", s, quiet=True)["text"]) for s in ("validation", "test")}
    assert count == {"validation": 213_886, "test": 241_211}


def test_labels() -> None:
    for name, column, row, label in [
        ("rotten_tomatoes", "label", "the rock is destined to be the 21st century", "positive"),
        ("trec", "label", "How did serfdom develop in and then leave Russia", "DESC"),
        ("names", "language", "Nguyen", "Vietnamese"),
    ]:
        here(name)
        rows = load(name, quiet=True)
        text = rows.column_names[0]
        found = next(example for example in rows if example[text].startswith(row))
        assert rows.features[column].int2str(found[column]) == label


def test_spans_are_where_they_are_said_to_be() -> None:
    here("disfl_qa")
    rows = load("disfl_qa", quiet=True).to_list()
    spans = [row for row in rows if row["start"] >= 0]
    assert len(spans) == 600
    assert all(row["passage"][row["start"] :].startswith(row["answer"]) for row in spans)


def test_entities() -> None:
    here("conll")
    rows = load("conll", quiet=True)
    names = rows.features["tags"].feature.names
    first = rows[0]
    assert [(word, names[tag]) for word, tag in zip(first["tokens"], first["tags"], strict=True) if tag] == [
        ("JAPAN", "B-LOC"),
        ("CHINA", "B-PER"),  # a slip of the published labels
    ]


def test_vectors() -> None:
    here("glove_50d")
    rows = load("glove_50d", quiet=True).select(range(5000)).with_format("torch")
    vectors = torch.nn.functional.normalize(rows["vector"][:], dim=1)
    words = list(rows.with_format(None)["word"])
    assert vectors.shape == (5000, 50)
    nearest = (vectors @ vectors[words.index("king")]).argsort(descending=True)[1:10]
    assert "queen" in {words[i] for i in nearest}


def test_minilm_tells_similar_sentences() -> None:
    """Mean pooling, every 20th pair: Spearman's rank correlation with the human scores (0.82 over the whole test)."""
    here("minilm")
    here("stsb")
    from transformers import AutoTokenizer, BertModel

    folder = weights("minilm")
    model, report = BertModel.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pairs = load("stsb", "test", quiet=True)[::20]

    def encode(texts: list[str]) -> torch.Tensor:
        batch = tokenizer(texts, padding=True, return_tensors="pt")
        mask = batch["attention_mask"][..., None]
        with torch.inference_mode():
            return (model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)

    similarity = torch.nn.functional.cosine_similarity(encode(pairs["sentence1"]), encode(pairs["sentence2"]))
    ranks = torch.stack([similarity.argsort().argsort(), torch.tensor(pairs["score"]).argsort().argsort()])
    assert torch.corrcoef(ranks.float())[0, 1] > 0.7


def test_smollm2_goes_on() -> None:
    here("smollm2")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = weights("smollm2")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    assert model.dtype == torch.float32
    assert "<|im_start|>user\nHello<|im_end|>" in tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hello"}], tokenize=False
    )
    prompt = tokenizer("The capital of France is", return_tensors="pt")
    with torch.inference_mode():
        assert tokenizer.decode(model(**prompt).logits[0, -1].argmax()) == " Paris"
