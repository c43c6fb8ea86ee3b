"""Labelled corpora as instructions with answers, as FLAN was made (Wei et al. 2022): an instruction above each text."""

import random
from dataclasses import dataclass

from course_lib import data
from course_lib.prompting import chat


@dataclass(frozen=True)
class Task:
    """An instruction that offers its answers; ``answers`` says which label of the corpus becomes which word."""

    corpus: str
    columns: tuple[str, str]  # of the text and of the label
    instruction: str
    answers: dict[str, str]


TASKS: dict[str, Task] = {
    "question": Task(
        "trec",
        ("text", "label"),
        "Does this question ask for a description, thing, person, place or number?",
        {"DESC": "description", "ENTY": "thing", "HUM": "person", "LOC": "place", "NUM": "number"},
    ),
    "review": Task(
        "rotten_tomatoes",
        ("text", "label"),
        "Is this review good or bad?",
        {"negative": "bad", "positive": "good"},
    ),
    "name": Task(
        "names",
        ("name", "language"),
        "Is this name Japanese, Russian, Italian or Chinese?",
        {language: language for language in ("Japanese", "Russian", "Italian", "Chinese")},
    ),
}

WORDS: dict[str, tuple[tuple[str, str], str]] = {  # what to call the two, and pairs of them
    "capitals": (
        ("Country", "Capital"),
        "France Paris, Germany Berlin, Italy Rome, Spain Madrid, Portugal Lisbon, Greece Athens, "
        "Egypt Cairo, Japan Tokyo, China Beijing, Russia Moscow, Poland Warsaw, Austria Vienna, "
        "Norway Oslo, Sweden Stockholm, Finland Helsinki, Ireland Dublin, Belgium Brussels, "
        "Hungary Budapest, Cuba Havana, Peru Lima, Canada Ottawa, Iran Tehran, Iraq Baghdad, "
        "Kenya Nairobi, Thailand Bangkok, Syria Damascus, Serbia Belgrade, Romania Bucharest",
    ),
    "opposites": (
        ("Word", "Opposite"),
        "hot cold, big small, up down, left right, good bad, fast slow, high low, old young, rich poor, "
        "strong weak, happy sad, day night, black white, full empty, hard soft, wet dry, early late, "
        "near far, long short, love hate, win lose, push pull, true false, wide narrow, buy sell, "
        "war peace, life death, north south",
    ),
    "Spanish": (
        ("English", "Spanish"),
        "dog perro, cat gato, house casa, water agua, red rojo, book libro, sun sol, moon luna, "
        "bread pan, milk leche, night noche, friend amigo, green verde, white blanco, black negro, "
        "man hombre, woman mujer, fire fuego, sea mar, flower flor, hand mano, head cabeza, city ciudad, "
        "school escuela, door puerta, table mesa, chair silla, horse caballo",
    ),
}


def word_pairs(task: str, seed: int) -> list[tuple[str, str]]:
    """The pairs of one of `WORDS`, in an order drawn at random."""
    pairs = [tuple(pair.split()) for pair in WORDS[task][1].split(", ")]
    random.Random(seed).shuffle(pairs)
    return pairs


def labelled(task: str, split: str, each: int, seed: int, longest: int = 12) -> list[tuple[str, str]]:
    """``each`` texts of at most ``longest`` words for every answer of the task, with that answer, in random order."""
    about = TASKS[task]
    rows = data.load(about.corpus, split, quiet=True)
    text, label = about.columns
    names, dice, found = rows.features[label].names, random.Random(seed), []
    columns = rows[:]
    for known, answer in about.answers.items():
        pairs = zip(columns[text], columns[label], strict=True)
        fitting = [t for t, number in pairs if names[number] == known and len(t.split()) <= longest]
        if len(fitting) < each:
            raise ValueError(f"{about.corpus} has {len(fitting)} short texts for {answer!r}; {each} were asked for.")
        found += [(t, answer) for t in dice.sample(fitting, each)]
    dice.shuffle(found)
    return found


def examples(task: str, split: str, each: int, seed: int) -> list[tuple[str, str]]:
    """The same as a chat: the task's instruction above each text."""
    pairs = labelled(task, split, each, seed)
    return [(chat(f"{TASKS[task].instruction}\n{text}"), answer) for text, answer in pairs]
