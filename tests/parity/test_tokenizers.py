"""Our tokenizers equal Hugging Face's: the same merges and numbers when trained, the same tokens from real files."""

import json
import random
import unicodedata
from collections import Counter

import pytest
import tokenizers as hf
from comparing import RUN, same, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from course_lib.data import load as corpus
from course_lib.data import sources
from course_lib.data.catalogue import WEIGHTS
from course_lib.pretrained import weights
from course_lib.tokenizers import BPE, WordPiece, count_pairs, load, merge
from course_lib.tokenizers.bpe import BYTES, WORDS, spell

SEEDS = seeds(50)

ASSIGNED = st.characters(exclude_categories=("Cs", "Cn"))  # of what Unicode has not yet assigned, tables differ
TEXT = st.text(st.one_of(ASSIGNED, st.sampled_from("ab 'st\n\r\t\u00a0\u3000éß12²!…日본")), max_size=40)

SENTENCES = [
    "",
    " ",
    "The quick brown fox jumps over the lazy dog.",
    "Don't you've we'll I'm it'S they'RE",
    "Ünïcödé naïve café ÅNGSTRÖM Straße ΣΊΣΥΦΟΣ İstanbul ﬁne",
    "日本語のテキスト、中文字符。한국어 문장 हिन्दी ภาษาไทย العربية עברית",
    "tabs\tand\nnewlines\r\n  and   spaces \u00a0\u2003\u3000 end ",
    "🙂👩‍👩‍👧‍👦 zero\u200bwidth \u202ertl\u202c soft\u00adhyphen \ufeffBOM \ufffd \x00 \x1f \x7f",
    'Half ½ of ２ and Ⅷ; no: (yes)! "quoted" – so…?',
    "$3.50 + 4^2 = 7e-3 <b>|~`</b> #hash ##double [MASK] [mask] [UNK][SEP] [ CLS ] <|endoftext|>",
    "a" * 101 + " " + "b" * 100 + " antidisestablishmentarianism",
    "e\u0301a\u0308 \u0301alone x\u20dd \u0e33 \u1e9e \u01c5",
]


def shakespeare() -> str:
    return corpus("tiny_shakespeare", quiet=True)["text"][0]


def theirs(texts: list[str], size: int, special: tuple[str, ...] = (), least: int = 2) -> hf.Tokenizer:
    tokenizer = hf.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    options = {"vocab_size": size, "min_frequency": least, "special_tokens": list(special), "show_progress": False}
    trainer = trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **options)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def same_merges(ours: BPE, other: hf.Tokenizer, note: str = "") -> None:
    model = json.loads(other.to_str())["model"]
    same(ours.merges, [tuple(pair) for pair in model["merges"]], f"merges, {note}")
    same(ours.ids, model["vocab"], f"numbers, {note}")


# ── Byte-pair encoding ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_alphabet_is_gpt2s():
    assert sorted(BYTES) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert spell(" é\n") == "ĠÃ©Ċ"


def test_merge_and_count_pairs_by_hand():
    assert merge(["a", "b", "a", "b", "c"], ("a", "b"), "ab") == ["ab", "ab", "c"]
    assert merge([1, 1, 1, 1, 1], (1, 1), 2) == [2, 2, 1]
    assert merge([], (1, 2), 3) == []
    assert count_pairs([[1, 1, 1], [1, 2]]) == {(1, 1): 2, (1, 2): 1}
    assert count_pairs(["low", "lower"], [5, 2])["l", "o"] == 7
    tokens = (1, 2, 1, 2)
    merge(tokens, (1, 2), 3)
    assert tokens == (1, 2, 1, 2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.compares("BPE.train, words with many ties", "tokenizers: the same merges and numbers")
def test_same_merges_and_numbers_where_ties_are_many(seed):
    """Words of one to four different letters: nearly every count is a tie, and pairs such as (a, a) overlap."""
    draw = random.Random(seed)
    letters = draw.sample("abcdzé日Ω🙂", draw.randint(1, 4))
    longest = draw.choice([4, 12, 40])
    words = ["".join(draw.choices(letters, k=draw.randint(1, longest))) for _ in range(draw.randint(1, 60))]
    texts = [" ".join(words[:20]), " ".join(words[20:])]
    special = draw.choice([(), ("<|endoftext|>",), ("ab", "<s>", "<s>>")])
    size, least = 256 + len(special) + draw.choice([0, 5, 60, 600]), draw.randint(0, 3)
    ours, other = BPE.train(texts, size, special, least), theirs(texts, size, special, least)
    same_merges(ours, other, f"seed {seed}")
    for text in [*texts, "".join(letters) * 9, "zab<s>> abab<|endoftext|><s>"]:
        same(ours.encode(text).tolist(), other.encode(text).ids, f"seed {seed}")


@pytest.mark.parametrize("seed", [None, *seeds(1)])
@pytest.mark.compares("BPE.train, Shakespeare", "tokenizers: the same merges and numbers")
def test_same_merges_and_numbers_on_real_text(seed):
    draw, text = random.Random(seed), shakespeare()
    start, size = (0, 3000) if seed is None else (draw.randrange(len(text) - 200_000), draw.randint(300, 2000))
    part, rest = text[start : start + 200_000], text[-50_000:]
    ours, other = BPE.train(part, size), theirs([part], size)
    same_merges(ours, other, f"seed {seed}")
    assert len(ours) == size
    same(ours.encode(rest).tolist(), other.encode(rest).ids, f"seed {seed}")
    assert ours.decode(ours.encode(rest)) == rest


@pytest.mark.parametrize("seed", seeds(4))
def test_the_quick_trainer_learns_what_the_slow_one_does(seed):
    """The definition: count all pairs, merge the most frequent, begin again."""
    text = shakespeare()
    start = random.Random(seed).randrange(len(text) - 3000)
    text = text[start : start + 3000]
    quick = BPE.train(text, 300)
    counts = Counter(WORDS.findall(text))
    words, merges = [[quick.ids[byte] for byte in spell(word)] for word in counts], []
    while len(merges) < 44:
        pairs = count_pairs(words, counts.values())
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        words = [merge(word, best, 256 + len(merges)) for word in words]
        merges.append(best)
    assert quick.merges == [(quick.tokens[a], quick.tokens[b]) for a, b in merges], f"seed {seed}"


@pytest.fixture(scope="module")
def trained() -> tuple[BPE, hf.Tokenizer]:
    texts = [shakespeare()[:60_000], *SENTENCES * 3]
    return BPE.train(texts, 1200, ("<|endoftext|>",)), theirs(texts, 1200, ("<|endoftext|>",))


@given(TEXT)
@settings(max_examples=300, deadline=None)
@pytest.mark.compares("BPE.encode, any Unicode (hypothesis)", "tokenizers")
def test_any_text_gives_the_same_numbers(trained, text):
    ours, other = trained
    same(ours.encode(text).tolist(), other.encode(text).ids, "numbers")


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_comes_back(trained, text):
    assert trained[0].decode(trained[0].encode(text)) == text


@given(st.lists(st.integers(0, 1199), max_size=20), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_numbers_give_the_same_text(trained, ids, skip):
    """Most of them are no whole characters."""
    ours, other = trained
    assert ours.decode(ids, skip_special=skip) == other.decode(ids, skip_special_tokens=skip)


@pytest.mark.parametrize("text", SENTENCES, ids=range(len(SENTENCES)))
@pytest.mark.compares("BPE.encode, many scripts", "tokenizers")
def test_sentences_in_many_scripts(trained, text):
    ours, other = trained
    same(ours.encode(text).tolist(), other.encode(text).ids, "numbers")
    assert ours.tokenise(text) == other.encode(text).tokens
    assert ours.decode(ours.encode(text)) == text


def test_a_tokenizer_read_from_its_file_is_the_same(trained, tmp_path):
    ours, other = trained
    other.save(str(tmp_path / "tokenizer.json"))
    read = load(tmp_path)
    assert (read.ids, read.merges, read.special) == (ours.ids, ours.merges, ours.special)


@pytest.mark.compares("BPE.save", "tokenizers reads the file: the same numbers")
def test_a_saved_tokenizer_is_read_by_theirs(trained, tmp_path):
    trained[0].save(tmp_path / "ours.json")
    other = hf.Tokenizer.from_file(str(tmp_path / "ours.json"))
    for text in [*SENTENCES, shakespeare()[:20_000]]:
        ids = trained[0].encode(text).tolist()
        same(other.encode(text).ids, ids, text[:20])
        same(other.decode(ids, skip_special_tokens=False), trained[0].decode(ids), text[:20])


@pytest.mark.compares("BPE, SmolLM2's file", "tokenizers")
def test_smollm2_equals_its_real_tokenizer():
    if not sources.present(WEIGHTS["smollm2"]):
        pytest.skip("SmolLM2 is not on this machine: python -m course_lib fetch smollm2")
    folder = weights("smollm2")
    ours, other = load(folder), hf.Tokenizer.from_file(str(folder / "tokenizer.json"))
    start = random.Random(RUN).randrange(900_000)
    for text in [*SENTENCES, shakespeare()[:100_000], shakespeare()[start : start + 100_000]]:
        same(ours.encode(text).tolist(), other.encode(text).ids, f"seed {RUN}")


# ── WordPiece ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def minilm():
    """Ours and the real one, both from MiniLM's files."""
    try:
        folder = weights("minilm")
    except sources.MissingData as error:
        pytest.skip(str(error))
    from transformers import BertTokenizerFast

    return load(folder), BertTokenizerFast.from_pretrained(folder)


def numbers(tokenizer, *texts: str) -> list[int]:
    return tokenizer(*texts, truncation=False, padding=False)["input_ids"]


@pytest.mark.parametrize("text", SENTENCES, ids=range(len(SENTENCES)))
@pytest.mark.compares("WordPiece, MiniLM's file, many scripts", "tokenizers")
def test_minilm_sentences(minilm, text):
    ours, other = minilm
    ids = ours.encode(text)
    same(ids.tolist(), numbers(other, text), "numbers")
    same(ours.encode(text, "A second one?").tolist(), numbers(other, text, "A second one?"), "numbers of a pair")
    for skip in (False, True):
        wanted = other.backend_tokenizer.decode(ids.tolist(), skip_special_tokens=skip)
        assert ours.decode(ids, skip_special=skip) == wanted


@pytest.mark.compares("WordPiece, MiniLM's file, Shakespeare", "tokenizers")
def test_minilm_on_real_text(minilm):
    ours, other = minilm
    start = random.Random(RUN).randrange(700_000)
    for text in (shakespeare()[:100_000], shakespeare()[start : start + 100_000]):
        same(ours.encode(text).tolist(), numbers(other, text), "numbers")


@given(st.data())
@settings(max_examples=300, deadline=None)
@pytest.mark.compares("WordPiece, MiniLM's file, any Unicode (hypothesis)", "tokenizers")
def test_minilm_on_any_unicode(minilm, data):
    """Of the characters that Unicode took in or moved after version 8, on which the two tables may differ, none."""
    ours, other = minilm
    agreed = ASSIGNED.filter(lambda c: ours.encode(f"a{c}a").tolist() == numbers(other, f"a{c}a"))
    text = data.draw(st.text(st.one_of(agreed, st.sampled_from("aéßΣİ ,.[]#'日\t\n\x00$~ẞ\u0301")), max_size=30))
    same(ours.encode(text).tolist(), numbers(other, text), "numbers")


def test_minilm_characters_on_which_the_tables_differ(minilm):
    """One character in five hundred of the basic plane, and none of those in the vocabulary."""
    ours, other = minilm
    known = set("".join(ours.ids))
    characters = [chr(i) for i in range(0x10000) if not 0xD800 <= i < 0xE000 and unicodedata.category(chr(i)) != "Cn"]
    words = [f"a{c}a" for c in characters]
    encoded = other.backend_tokenizer.encode_batch(words, add_special_tokens=False)
    differ = {
        c for c, word, row in zip(characters, words, encoded, strict=True) if ours.tokenise(word) != trimmed(row.tokens)
    }
    assert len(differ) < 200, sorted(differ)
    assert not differ & known


def trimmed(tokens: list[str]) -> list[str]:
    """The file asks for rows of 128, filled up with [PAD]."""
    return [token for token in tokens if token != "[PAD]"]


def test_minilm_from_its_list_of_words(minilm, tmp_path):
    (tmp_path / "vocab.txt").write_bytes((weights("minilm") / "vocab.txt").read_bytes())
    read = load(tmp_path)
    assert read.ids == minilm[0].ids
    assert all(read.encode(text).tolist() == minilm[0].encode(text).tolist() for text in SENTENCES)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    assert load(tmp_path).tokenise("Café") == ["[UNK]"]


def test_capitals_and_accents_stay_where_the_model_keeps_them():
    ids = {token: i for i, token in enumerate(["[UNK]", "[CLS]", "[SEP]", "Ca", "##fé", "ca", "##fe"])}
    ours = WordPiece(ids, lower=False)
    other = hf.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    other.normalizer = hf.normalizers.BertNormalizer(lowercase=False)
    other.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    for text in ("Café", "cafe CAFÉ Cafe\u0301"):
        assert ours.tokenise(text) == other.encode(text).tokens
    assert WordPiece(ids).tokenise("Café") == ["ca", "##fe"]


def test_rows_of_different_length_are_filled_up(minilm):
    ids, lengths = minilm[0].encode_all(["Hello", "Hello, world!"])
    assert ids.tolist() == [[101, 7592, 102, 0, 0, 0], [101, 7592, 1010, 2088, 999, 102]]
    assert lengths.tolist() == [3, 6]


# ── Errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: BPE.train("text", 255), "needs at least 256 tokens; got 255"),
        (lambda: BPE.train("text", 256, special=("<s>",)), "needs at least 257 tokens"),
        (lambda: BPE.train("", 300), "no text to learn from"),
        (lambda: BPE.train([], 300), "no text to learn from"),
        (lambda: BPE.train("text", 300, special=("<s>", "<s>")), "must differ"),
        (lambda: BPE.train("a \ud800", 300), "half of a character"),
        (lambda: BPE.train("text", 256).decode([256]), "There is no token 256; this tokenizer has 256"),
        (lambda: BPE.train("text", 256).decode([-1]), "There is no token -1"),
        (lambda: BPE({"a": 0, "b": 1}, [("a", "b")]), "lacks a token"),
        (lambda: WordPiece({"a": 0}), r"needs \[UNK\], \[CLS\], \[SEP\]"),
        (lambda: load("nowhere"), "neither tokenizer.json nor vocab.txt in nowhere"),
    ],
)
def test_errors_are_one_clear_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize(
    ("part", "setting", "sentence"),
    [
        ("model", {"type": "Unigram"}, "this one is Unigram"),
        ("model", {"ignore_merges": True}, "settings of its model"),
        ("pre_tokenizer", {"add_prefix_space": True}, "settings of its pre_tokenizer"),
        ("normalizer", {"type": "NFC"}, "settings of its normalizer"),
        ("post_processor", {"type": "RobertaProcessing"}, "settings of its post_processor"),
    ],
)
def test_a_file_with_other_settings_is_refused(trained, tmp_path, part, setting, sentence):
    file = json.loads(trained[1].to_str())
    file[part] = (file[part] or {}) | setting
    (tmp_path / "tokenizer.json").write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        load(tmp_path)
