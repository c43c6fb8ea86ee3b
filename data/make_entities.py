"""Make ``entities.csv``: sentences in the manner of newswire, their named entities marked as CoNLL-2003 marks them.

    Maria Keller of Bayer Leverkusen beat the Spaniard 6-3 7-5 in Madrid on Monday .
    B-PER I-PER  O  B-ORG I-ORG      O    O   B-MISC   O   O   O  B-LOC  O  O      O

The templates in ``entity_templates.txt`` are filled with the names of `name_lists.py`. There, ``=`` opens a group (with
its weight); ``<city>`` is a slot, ``[a|b]`` one of two wordings (``[a|]``: or none), ``@when`` a piece that many
templates share. A city's team is an organisation, a country's team a place, a nationality miscellaneous; titles,
weekdays and months are nothing. Headlines are in capitals.

Every eighth template and about one name in seven are for validation only, so that neither its wordings nor its names
are seen in training.

``python data/make_entities.py`` writes the file and its line in SHA256SUMS; ``--check`` only compares the bytes.
"""

import random
import re
import sys

import name_lists as names
from corpus_file import FOLDER, one_of, words, write_or_check

SEED = 2003
SIZES = {"train": 6000, "validation": 800}
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words("January February March April May June July August September October November December")

KINDS = {  # slot → tag and names
    "city": ("LOC", names.CITIES),
    "country": ("LOC", names.COUNTRIES),
    "region": ("LOC", names.REGIONS),
    "water": ("LOC", names.WATERS),
    "spot": ("LOC", names.SPOTS),
    "ground": ("LOC", names.GROUNDS),
    "company": ("ORG", names.COMPANIES),
    "body": ("ORG", names.BODIES),
    "party": ("ORG", names.PARTIES),
    "school": ("ORG", names.SCHOOLS),
    "paper": ("ORG", names.PAPERS),
    "club": ("ORG", names.CLUBS),
    "team": ("ORG", names.US_TEAMS),
    "nick": ("ORG", names.NICKNAMES),
    "county": ("ORG", names.CRICKET),
    "circuit": ("ORG", names.CIRCUITS),
    "stable": ("ORG", names.SPORT_TEAMS),
    "nation": ("MISC", names.NATIONS),
    "people": ("MISC", names.PEOPLES),
    "language": ("MISC", names.LANGUAGES),
    "cup": ("MISC", names.CUPS),
    "division": ("MISC", names.DIVISIONS),
    "war": ("MISC", names.WARS),
    "award": ("MISC", names.AWARDS),
    "holiday": ("MISC", names.HOLIDAYS),
    "plane": ("MISC", names.PLANES),
    "goods": ("MISC", names.GOODS),
    "work": ("MISC", names.WORKS),
    "treaty": ("MISC", names.TREATIES),
    "index": ("MISC", names.INDICES),
    "craft": ("MISC", names.CRAFT),
    "faith": ("MISC", names.FAITHS),
    "camp": ("MISC", names.CAMPS),
}
COMPOSED = {  # slot → how often its name is put together, and from what
    "city": (0.12, "Port_{last} Fort_{last} San_{first} St._{first} {last}ville {last}burg {last}stad New_{city}"),
    "spot": (0.35, "{last}_Street Mount_{last} Lake_{last} {last}_Park {last}_County {last}_Bridge {last}_Valley"),
    "company": (
        0.3,
        "{last}_&_{last} {last}_Brothers {last}_Corp {last}_Industries {last}_Inc {city}_Gas {city}_Steel "
        "{country}_Air {letters} {letters}_Holdings Banco_{last} {last}_AG {last}_Oil {country}_Telecom",
    ),
    "body": (
        0.5,
        "{office} {office} {office} {letters} {letters} {city}_City_Council {city}_Stock_Exchange Bank_of_{country} "
        "{nation}_Red_Cross {nation}_Football_Federation {city}_Chamber_of_Commerce {country}_Cricket_Board",
    ),
    "school": (
        0.5,
        "University_of_{city} {city}_University {last}_College {last}_Institute {last}_Clinic {city}_Museum",
    ),
    "party": (0.5, "{alliance}"),
    "paper": (
        0.4,
        "{city}_Times {city}_Herald {city}_Post Daily_{last} Radio_{city} {city}_Gazette {letters} TV_{city}",
    ),
    "club": (
        0.25,
        "{city}_United FC_{city} {city}_FC Dynamo_{city} Real_{city} Sporting_{city} {city}_Rovers {city}_Town",
    ),
    "cup": (
        0.4,
        "{nation}_Open {nation}_Cup {city}_Marathon {nation}_Grand_Prix {last}_Trophy {city}_International {last}_Cup "
        "{nation}_Championship {city}_Open {city}_Classic {country}_Cup",
    ),
    "treaty": (0.5, "Treaty_of_{city} {city}_Convention {city}_Protocol {last}_Plan {city}_Declaration"),
}
OFFICES = [
    f"{first} {second} {third}"
    for first in words("National Central Federal Royal State International European World Regional General")
    for second in words("Health Labour Trade Energy Space Aviation Fisheries Insurance Tourism Weather Police Coffee")
    for third in words("Agency Authority Board Commission Council Office Association Federation Committee Service")
] + [
    f"{first} {second}"
    for first in words("Justice Health Trade Energy Transport Education Fisheries Housing Tourism Culture Revenue")
    for second in words("Ministry Department Commission Bureau Board")
]  # fmt: skip
ALLIANCES = [
    f"{first} {second} {third}"
    for first in words("United New National Democratic People's Social Independent Popular Christian")
    for second in words("Justice Liberty Unity Farmers' Reform Workers' Homeland Renewal")
    for third in words("Party Front Union League Movement Alliance")
]
LETTERS = [a + b + c + d for a in "ABCDFIKLMNPRSTU" for b in "BCDFLMPRST" for c in "BCFGLMNPR" for d in ("", "A", "U")]

LISTED = {name for _, listed in KINDS.values() for name in listed}  # a composed name may be one, of the other split

JOINED = ("politics", "finance", "sport", "accidents", "culture", "plain")  # groups whose sentences are joined at times
JOINTS = words(",_while ,_and ,_but ; when after because")
EVERY = 8  # each eighth template of a group is for validation
TAKEN_APART = re.compile(r"<(\w+)>")
CHOICE = re.compile(r"\[([^\[\]]*)\]")

Tagged = list[tuple[str, str]]


def entity(name: str, tag: str) -> Tagged:
    first, *rest = name.split()
    return [(first, f"B-{tag}"), *((word, f"I-{tag}") for word in rest)]


class Writer:
    """Fills the templates of a split with its names."""

    def __init__(self, split: str, draw: random.Random) -> None:
        self.draw = draw
        self.names = {slot: (tag, names.dealt(listed, split)) for slot, (tag, listed) in KINDS.items()}
        self.first, self.last = names.dealt(names.FIRST["any"], split), names.dealt(names.LAST, split)
        self.stems, self.fields = names.dealt(names.COMPANY_STEMS, split), names.COMPANY_FIELDS
        self.parts = {slot: listed for slot, (_, listed) in self.names.items()} | {
            "first": self.first,
            "last": self.last,
            "office": names.dealt(OFFICES, split),
            "alliance": names.dealt(ALLIANCES, split),
            "letters": names.dealt(LETTERS, split),
        }
        self.pieces: dict[str, str] = {}
        self.templates: dict[str, list[str]] = {}
        self.groups: list[str] = []  # each as often as it weighs
        self.used: set[str] = set()  # names in this sentence
        self.read(split == "validation")

    def read(self, validation: bool) -> None:
        """The templates of a split."""
        place = 0
        for line in filter(None, (FOLDER / "entity_templates.txt").read_text(encoding="utf-8").split("\n")):
            if line.startswith("= "):
                _, group, weight = line.split()
                self.groups += [group] * int(weight)
                self.templates[group], place = [], 0
            elif not self.groups:
                piece, _, text = line.partition(" ")
                self.pieces[piece[1:]] = text
            else:
                place += 1
                if (place % EVERY == 0) == validation:
                    self.templates[group].append(line)

    def one(self, choices: list[str]) -> str:
        return one_of(self.draw, choices)

    def number(self, low: int, high: int) -> str:
        return str(low + int(self.draw.random() * (high - low + 1)))

    def sentence(self) -> Tagged:
        group = self.one(self.groups)
        self.used.clear()
        tagged = self.filled(self.chosen(self.one(self.templates[group])))
        if group in JOINED and tagged[-1][0] == "." and self.draw.random() < 0.12:
            other = self.filled(self.chosen(self.one(self.templates[group])))
            if other[0][0] not in ('"', "--") and other[-1][0] == ".":
                first = other[0][0].lower() if other[0][1] == "O" else other[0][0]
                joint = [(word, "O") for word in self.one(JOINTS).split("_")]
                tagged = [*tagged[:-1], *joint, (first, other[0][1]), *other[1:]]
        if group == "headlines" or (group in ("tables", "datelines") and self.draw.random() < 0.15):
            tagged = [(word.upper(), tag) for word, tag in tagged]
        return self.polished(tagged)

    def polished(self, tagged: Tagged) -> Tagged:
        """*an* before a vowel; a capital at the beginning."""
        vowel = re.compile(r"(?!uni|eu|u\.|one|ukr)[aeiou]", re.IGNORECASE)
        for place, (word, tag) in enumerate(tagged[:-1]):
            if word in ("a", "A") and tag == "O" and vowel.match(tagged[place + 1][0]):
                tagged[place] = (f"{word}n", tag)
        (first, tag), *rest = tagged
        return [(first[0].upper() + first[1:], tag), *rest]

    def chosen(self, template: str) -> str:
        """The template with its pieces put in and its wordings chosen."""
        while "@" in template:
            template = re.sub(r"@(\w+)", lambda piece: self.pieces[piece[1]], template)
        while "[" in template:
            template = CHOICE.sub(lambda options: self.one(options[1].split("|")), template)
        return template

    def filled(self, template: str) -> Tagged:
        tagged: Tagged = []
        for word in template.split():
            slot = re.fullmatch(r"(<n>-)?<(\w+)>", word)
            if slot and (found := self.named(slot[2])):
                number = f"{self.number(1, 15)}-" if slot[1] else ""  # a player's, written to his name
                tagged += [(number + found[0][0], found[0][1]), *found[1:]]
            elif word == "<city>-based":
                tagged.append((self.one([n for n in self.names["city"][1] if " " not in n]) + "-based", "B-MISC"))
            else:
                tagged += [(part, "O") for part in TAKEN_APART.sub(lambda s: self.plain(s[1]), word).split()]
        return tagged

    def named(self, slot: str) -> Tagged | None:
        if slot in self.names:
            tag, listed = self.names[slot]
            share, patterns = COMPOSED.get(slot, (0, ""))
            if self.draw.random() < share:
                pattern = self.one(words(patterns)).replace("_", " ")
                name = re.sub(r"{(\w+)}", lambda part: self.one(self.parts[part[1]]), pattern)
                if name not in LISTED:
                    return entity(name, tag)
            frequent = [name for name in listed if name in names.FREQUENT]
            name = self.one(frequent if frequent and self.draw.random() < 0.2 else listed)
            if name in self.used:
                name = self.one([other for other in listed if other not in self.used] or listed)
            self.used.add(name)
            return entity(name, tag)
        if slot == "person":
            first, last, chance = self.one(self.first), self.one(self.last), self.draw.random()
            if chance < 0.1:
                first = f"{first[0]}."
            elif chance < 0.15:
                first = f"{first} {self.one(self.first)[0]}."
            elif chance < 0.2:
                first = f"{first}-{self.one(self.first)}"
            return entity(f"{first} {last}", "PER")
        if slot in ("last", "first"):
            return entity(self.one(self.last if slot == "last" else self.first), "PER")
        if slot == "initialled":
            return entity(f"{self.one(self.first)[0]}. {self.one(self.last)}", "PER")
        if slot == "firm":
            parts = [self.one(self.stems)]
            if self.draw.random() < 0.6:
                parts.append(self.one(self.fields))
            if len(parts) == 1 or self.draw.random() < 0.5:
                parts.append(self.one(names.COMPANY_ENDS))
            return entity(" ".join(parts), "ORG")
        return None

    def plain(self, slot: str) -> str:
        """Numbers, days and months."""
        number, one = self.number, self.one
        return {
            "n": lambda: number(2, 99),
            "of_month": lambda: number(1, 28),
            "nth": lambda: f"{number(4, 20)}th",
            "digit": lambda: number(1, 9),
            "big": lambda: f"{number(1, 90)},{number(100, 999)}",
            "pct": lambda: f"{number(1, 19)}.{number(0, 9)}",
            "decimal": lambda: f"{number(1, 120)}.{number(10, 99)}",
            "money": lambda: (
                f"{one(['$', '$', '£', ''])} {number(2, 900)} million {one(['', 'marks', 'francs', 'crowns'])}"
            ),
            "day": lambda: one(DAYS),
            "month": lambda: one(MONTHS),
            "year": lambda: number(1950, 1999),
            "date": lambda: f"{number(1990, 1999)}-{int(number(1, 12)):02}-{int(number(1, 28)):02}",
            "score": lambda: f"{number(0, 6)}-{number(0, 5)}",
            "sets": lambda: " ".join(f"{a}-{b}" for a, b in ((6, number(0, 4)), (number(6, 7), 5), (6, number(0, 4)))),
        }[slot]()


def rows() -> list[dict[str, str]]:
    """No sentence twice."""
    draw, seen, result = random.Random(SEED), set(), []
    for split, size in SIZES.items():
        writer, made = Writer(split, draw), 0
        while made < size:
            tagged = writer.sentence()
            tokens = " ".join(word for word, _ in tagged)
            if tokens.lower() not in seen:
                seen.add(tokens.lower())
                result.append({"split": split, "tokens": tokens, "tags": " ".join(tag for _, tag in tagged)})
                made += 1
    return result


if __name__ == "__main__":
    sys.exit(write_or_check("entities.csv", rows()))
