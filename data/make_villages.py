"""Make ``villages.csv``: a small land that nobody knows; a passage about each village, and four questions about it.

    Upper Osford lies on the river Lune. The miller Edda Veld founded it in 1612. It is known for its rye bread.
    Who founded Upper Osford?        → Edda Veld

No model has read of these villages: whatever it answers rightly, it has from the passage. Each name occurs with twelve
different words before it, so passages are easily mistaken for one another.

``python data/make_villages.py`` writes the file and its line in SHA256SUMS; ``--check`` only compares the bytes.
"""

import random
import sys

from corpus_file import one_of, words, write_or_check

SEED = 2020
FIRST_YEAR, YEARS = 1500, 400

BEFORE = words("Upper Lower Old New North South East West Great Little Inner Outer")
NAMES = words(
    "Tarvik Moldale Brenmere Osford Quelholm Fenwick Darstead Linbury Grothorpe Hulgate Vasvik Pemdale Sterford "
    "Wilholm Yarwick Norstead Kelbury Jostgate Rudmere Embthorpe"
)
RIVERS = words("Osk Lune Virra Tamble Ennet Gruve Solm Wadda Pirn Ketter Alder Mussel")
FIRST_NAMES = words("Mira Jonas Edda Piet Salla Ruben Ilse Torvald Nessa Bruno Greta Anselm")
LAST_NAMES = words("Dunlow Harkin Veld Osterby Crane Mossman Tilley Brandt Falk Winslow Penrose Holt")
TRADES = words("miller glassblower shepherd potter weaver ferryman beekeeper blacksmith")
FOODS = words("plum-cheese smoked-eel rye-bread pear-cider walnut-oil honey-cake goat-butter onion-soup")


def village(name: str, draw: random.Random) -> list[dict[str, str]]:
    """Four rows: the passage with each of its questions."""
    river, trade, food = one_of(draw, RIVERS), one_of(draw, TRADES), one_of(draw, FOODS).replace("-", " ")
    founder, year = f"{one_of(draw, FIRST_NAMES)} {one_of(draw, LAST_NAMES)}", FIRST_YEAR + int(draw.random() * YEARS)
    passage = (
        f"{name} lies on the river {river}. The {trade} {founder} founded it in {year}. It is known for its {food}."
    )
    questions = {
        f"On which river does {name} lie?": river,
        f"In which year was {name} founded?": str(year),
        f"Who founded {name}?": founder,
        f"What is {name} known for?": food,
    }
    return [{"split": "test", "passage": passage, "question": q, "answer": a} for q, a in questions.items()]


def rows() -> list[dict[str, str]]:
    draw = random.Random(SEED)
    return [row for name in NAMES for before in BEFORE for row in village(f"{before} {name}", draw)]


if __name__ == "__main__":
    sys.exit(write_or_check("villages.csv", rows()))
