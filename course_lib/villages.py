"""A small land that nobody knows: invented villages, a passage about each, and questions with one right answer.

No model has read of them: whatever it answers rightly, it has from the passage.
"""

import random
from dataclasses import dataclass

WORDS = {
    "before": "Upper Lower Old New North South",  # neighbours have names that are easily mistaken
    "name": "Tarvik Moldale Brenmere Osford Quelholm Fenwick Darstead Linbury Grothorpe Hulgate Vasvik Pemdale "
    "Sterford Wilholm Yarwick Norstead Kelbury Jostgate Rudmere Embthorpe",
    "river": "Osk Lune Virra Tamble Ennet Gruve Solm Wadda Pirn Ketter Alder Mussel",
    "first name": "Mira Jonas Edda Piet Salla Ruben Ilse Torvald Nessa Bruno Greta Anselm",
    "last name": "Dunlow Harkin Veld Osterby Crane Mossman Tilley Brandt Falk Winslow Penrose Holt",
    "trade": "miller glassblower shepherd potter weaver ferryman beekeeper blacksmith",
    "food": "plum-cheese smoked-eel rye-bread pear-cider walnut-oil honey-cake goat-butter onion-soup",
}


@dataclass(frozen=True)
class Question:
    """``place`` is the number of the passage that holds the answer."""

    text: str
    answer: str
    place: int


def invent(count: int, seed: int) -> tuple[list[str], list[Question]]:
    """``count`` passages, one for each village, and four questions about each of them."""
    dice, words = random.Random(seed), {kind: line.split() for kind, line in WORDS.items()}
    names = [f"{before} {name}" for before in words["before"] for name in words["name"]]
    if not 1 <= count <= len(names):
        raise ValueError(f"There are names for 1 to {len(names)} villages; {count} were asked for.")
    passages, questions = [], []
    for place, name in enumerate(dice.sample(names, count)):
        drawn = {kind: dice.choice(known).replace("-", " ") for kind, known in words.items()}
        year, founder = str(dice.randint(1500, 1899)), f"{drawn['first name']} {drawn['last name']}"
        passages.append(
            f"{name} lies on the river {drawn['river']}. The {drawn['trade']} {founder} founded it in {year}. "
            f"It is known for its {drawn['food']}."
        )
        for text, answer in (
            (f"On which river does {name} lie?", drawn["river"]),
            (f"In which year was {name} founded?", year),
            (f"Who founded {name}?", founder),
            (f"What is {name} known for?", drawn["food"]),
        ):
            questions.append(Question(text, answer, place))
    return passages, questions
