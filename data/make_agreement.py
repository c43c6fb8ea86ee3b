"""Make ``agreement.csv``: does the verb agree with its subject, however much stands between them?

    the horse that chased the dogs near the old barns        → trips   (not: trip)
    the horses that chased the dogs near the old barns       → trip    (not: trips)

Every clause is used twice, once after a singular and once after a plural subject, with the same verb. So nothing but
the subject tells the answer: the words in between, the noun next to the verb and the length say exactly nothing. All
verbs inside the clauses are past tenses or participles, which are the same in both numbers.

``python data/make_agreement.py`` writes the file and its line in SHA256SUMS; ``--check`` only compares the bytes.
"""

import random
import sys

from corpus_file import one_of, words, write_or_check

SEED = 2017
DISTANCES = range(1, 41)  # words between subject and verb; a lesson picks from them
TRAIN_PAIRS, TEST_PAIRS = 100, 50  # pairs of sentences at each distance

Noun = tuple[str, str]  # singular, plural


def pairs(text: str) -> list[tuple[str, str]]:
    return [tuple(pair.split("/")) for pair in text.split()]


PEOPLE = pairs(
    "farmer/farmers king/kings child/children woman/women man/men teacher/teachers singer/singers sailor/sailors "
    "doctor/doctors neighbour/neighbours painter/painters guest/guests baker/bakers thief/thieves judge/judges"
)
ANIMALS = pairs(
    "horse/horses dog/dogs cat/cats mouse/mice goose/geese wolf/wolves fox/foxes lion/lions cow/cows goat/goats "
    "pony/ponies bird/birds bear/bears donkey/donkeys rabbit/rabbits"
)
PLACES = pairs(
    "barn/barns field/fields river/rivers house/houses gate/gates tower/towers garden/gardens bridge/bridges "
    "hill/hills tree/trees church/churches wall/walls shop/shops castle/castles tent/tents lake/lakes "
    "bench/benches well/wells mill/mills road/roads"
)
VERBS = pairs(  # the verb to be predicted: third person singular/plural
    "trips/trip sleeps/sleep waits/wait falls/fall runs/run eats/eat rests/rest hides/hide jumps/jump listens/listen "
    "stumbles/stumble returns/return disappears/disappear moves/move arrives/arrive wanders/wander"
)
TRANSITIVE = words("chased followed watched saw heard met found liked feared knew passed frightened")
PARTICIPLES = words("chased followed watched seen heard found liked feared admired frightened guided led")
DRIVEN = words("raced led driven carried")
INTRANSITIVE = words("slept waited rested hid jumped stumbled wandered sang ate shouted")
WHERE = words("near behind beside opposite")
WHITHER = words("past towards around")
ADJECTIVES = {
    "animate": words("old young tall small grey quiet clever tired strange happy lazy lonely famous"),
    "place": words("old tall small grey quiet strange famous white narrow empty"),
}
ADVERBS = words("often always rarely usually sometimes never")
ONCE = words("once often never rarely")

KIND = dict.fromkeys(PEOPLE, "person") | dict.fromkeys(ANIMALS, "animal") | dict.fromkeys(PLACES, "place")
NOUNS = {"animate": PEOPLE + ANIMALS, "place": PLACES}
MODIFIERS = {  # what may follow a noun of each kind, or (None) a verb; the names are examples
    "person": ["near the barn", "that chased the dogs", "that the dogs chased", "chased by the dogs", "that slept"],
    "place": ["near the barn", "that stood near the barn", "where the dogs slept"],
    None: ["near the barn"],
}
MODIFIERS["animal"] = [*MODIFIERS["person"], "raced past the barn"]


class Clause:
    """Words after ``subject``, grown one modifier at a time; never the same noun twice."""

    def __init__(self, subject: Noun, draw: random.Random) -> None:
        self.draw = draw
        self.words: list[str] = []
        self.numbers: list[int] = []  # of the nouns among the words, in order: 0 singular, 1 plural
        self.used = [subject]
        self.head: Noun | None = subject  # what the next modifier modifies; None: a verb

    def grow(self) -> None:
        kind = KIND.get(self.head)
        that = "who" if kind == "person" else one_of(self.draw, ("that", "which"))
        modifier = one_of(self.draw, MODIFIERS[kind])
        if modifier == "near the barn":
            self.add(WHERE), self.noun("place")
        elif modifier == "that stood near the barn":
            self.add([that], ["stood", "lay"], WHERE), self.noun("place")
        elif modifier == "raced past the barn":
            self.add(DRIVEN, WHITHER), self.noun("place")
        elif modifier == "where the dogs slept":
            self.add(["where"]), self.noun("animate"), self.verb(INTRANSITIVE)
        elif modifier == "that slept":
            self.add([that], *([ONCE] if self.draw.random() < 0.3 else [])), self.verb(INTRANSITIVE)
        elif modifier == "that the dogs chased":
            self.add([that]), self.noun("animate"), self.verb(TRANSITIVE)
        elif modifier == "that chased the dogs":
            self.add([that], TRANSITIVE), self.noun("animate")
        elif modifier == "chased by the dogs":
            self.add(PARTICIPLES, ["by"]), self.noun("animate")

    def add(self, *lists: list[str]) -> None:
        self.words += [one_of(self.draw, choices) for choices in lists]

    def noun(self, sort: str) -> None:
        """the (adjective) noun, in a random number"""
        self.add(["the"], *([ADJECTIVES[sort]] if self.draw.random() < 0.3 else []))
        self.head = one_of(self.draw, [noun for noun in NOUNS[sort] if noun not in self.used])
        self.used.append(self.head)
        self.numbers.append(one_of(self.draw, (0, 1)))
        self.words.append(self.head[self.numbers[-1]])

    def verb(self, verbs: list[str]) -> None:
        self.add(verbs)
        self.head = None


def clause(subject: Noun, distance: int, draw: random.Random) -> tuple[list[str], list[int]]:
    """``distance`` words that may follow ``subject``, and the numbers of the nouns among them."""
    if distance == 1:
        return [one_of(draw, ADVERBS)], []
    while True:
        made = Clause(subject, draw)
        while len(made.words) < distance:
            made.grow()
        if len(made.words) == distance:
            return made.words, made.numbers


def pair(distance: int, draw: random.Random) -> list[dict[str, str | int]]:
    """Two rows that differ in the number of the subject and in nothing else."""
    subject, verb = one_of(draw, NOUNS["animate"]), one_of(draw, VERBS)
    before = [one_of(draw, ADJECTIVES["animate"])] if draw.random() < 0.3 else []
    between, numbers = clause(subject, distance, draw)
    return [
        {
            "sentence": " ".join(["the", *before, subject[number], *between]),
            "subject": subject[number],
            "verb": verb[number],
            "wrong_verb": verb[1 - number],
            "number": ("singular", "plural")[number],
            "distance": distance,
            "attractors": sum(other != number for other in numbers),
            "nearest": ("singular", "plural")[numbers[-1]] if numbers else "none",
        }
        for number in (0, 1)
    ]


def rows() -> list[dict[str, str | int]]:
    """All rows; no sentence occurs twice, in whatever split."""
    draw, seen, result = random.Random(SEED), set(), []
    for split, count in (("test", TEST_PAIRS), ("train", TRAIN_PAIRS)):
        for distance in DISTANCES:
            made = 0
            while made < count:
                both = pair(distance, draw)
                if both[0]["sentence"] not in seen:
                    seen.add(both[0]["sentence"])
                    result += [{"split": split, **row} for row in both]
                    made += 1
    return result


if __name__ == "__main__":
    sys.exit(write_or_check("agreement.csv", rows()))
