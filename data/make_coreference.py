"""Make ``coreference.csv``: whom does the pronoun mean?

    the old king met the tired queen yesterday because she stopped .        → queen   (not: king)
    the old king met the tired queen yesterday because he stopped .         → king    (not: queen)
    the old queen met the tired king yesterday because she stopped .        → queen
    the old queen met the tired king yesterday because he stopped .         → king

Each frame is used these four times. So nothing but the agreement of pronoun and noun tells the answer: to trust the
first noun, or the noun nearest to the pronoun, is right exactly as often as wrong. The two nouns always differ in what
may stand for them (he, she or it), so each answer is certain. No noun occurs in both splits.

``python data/make_coreference.py`` writes the file and its line in SHA256SUMS; ``--check`` only compares the bytes.
"""

import itertools
import random
import sys

from corpus_file import one_of, words, write_or_check

SEED = 2019
GROUPS = 100  # of four sentences, for each pair of pronouns, in each split

NOUNS = {  # by turns for training and for testing
    "he": words(
        "king man boy father brother son uncle nephew husband prince actor waiter duke gentleman grandfather grandson "
        "groom monk emperor businessman policeman fisherman"
    ),
    "she": words(
        "queen woman girl mother sister daughter aunt niece wife princess actress waitress duchess lady grandmother "
        "granddaughter bride nun empress heroine widow stepmother"
    ),
    "it": words("car train bus boat truck taxi tram cart wagon van bicycle ambulance"),
}
MET = words("helped thanked watched saw heard met found liked feared knew called visited noticed trusted remembered")
PASSED = words("passed followed approached reached hit met")  # what a train may do, and may be done to
STOPPED = words("stopped turned left arrived returned disappeared moved vanished slowed")
WHEN = words("yesterday today twice again often once slowly")
CONNECTIVES = words("because before after when while until although")
ADJECTIVES = words("old small grey quiet strange famous slow noisy")


def group(pair: tuple[str, str], nouns: dict[str, list[str]], draw: random.Random) -> list[dict[str, str | int]]:
    """Four sentences: both orders of two nouns, with the pronoun of the one and of the other."""
    chosen = {pronoun: one_of(draw, nouns[pronoun]) for pronoun in pair}
    adjectives = [[one_of(draw, ADJECTIVES)] if draw.random() < 0.4 else [] for _ in range(2)]
    verb = one_of(draw, PASSED if "it" in pair else MET)
    when = [one_of(draw, WHEN)] if draw.random() < 0.4 else []
    connective, did = one_of(draw, CONNECTIVES), one_of(draw, STOPPED)
    rows = []
    for order in (pair, pair[::-1]):
        first, second = (chosen[pronoun] for pronoun in order)
        start = ["the", *adjectives[0], first, verb, "the", *adjectives[1], second, *when, connective]
        for pronoun in pair:
            sentence = [*start, pronoun, did, "."]
            antecedent, other = chosen[pronoun], chosen[pair[1 - pair.index(pronoun)]]
            rows.append(
                {
                    "sentence": " ".join(sentence),
                    "pronoun": pronoun,
                    "antecedent": antecedent,
                    "other": other,
                    "pronoun_place": len(start),
                    "antecedent_place": sentence.index(antecedent),
                    "other_place": sentence.index(other),
                }
            )
    return rows


def rows() -> list[dict[str, str | int]]:
    """All rows; no sentence occurs twice."""
    draw, seen, result = random.Random(SEED), set(), []
    for part, split in enumerate(("train", "test")):
        nouns = {pronoun: listed[part::2] for pronoun, listed in NOUNS.items()}
        for pair in itertools.combinations(NOUNS, 2):
            made = 0
            while made < GROUPS:
                four = group(pair, nouns, draw)
                if four[0]["sentence"] not in seen:
                    seen |= {row["sentence"] for row in four}
                    result += [{"split": split, **row} for row in four]
                    made += 1
    return result


if __name__ == "__main__":
    sys.exit(write_or_check("coreference.csv", rows()))
