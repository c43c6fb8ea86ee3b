"""Make ``spans.csv``: a passage, a question, and where in the passage the answer stands.

    Kestrel Glass was set up in Bruges in 1887 by Clara Maes. In 1921 the firm was sold to Jan Novák …
    Who bought Kestrel Glass?  → Jan Novák

Passages are in the manner of an encyclopaedia and wholly invented: people are an ordinary first and an ordinary last
name, firms, ships and villages have made-up names, real places only lend their names. Each passage has several
candidates of the answer's kind (years, people, places, …), so the question must be read.
About one question in five has a slip of the tongue, in the manner of Disfl-QA (Gupta et al. 2021).

``span_topics.txt`` is written like this: ``=`` opens a topic with its subject, the words that may stand for it later,
and the earliest year; ``+`` begins a fact with one wording, ``~`` is another wording; then come
questions, after the slot that answers them. ``{year.a}`` is a slot: a kind and a key; one key stands for one value in a
passage. ``{it}`` is the subject; ``[a|b]`` is one of two wordings. The first fact opens the passage.

Names are dealt to the splits as in `name_lists.py`; some topics are for validation only.

``python data/make_spans.py`` writes the file and its line in SHA256SUMS; ``--check`` only compares the bytes.
"""

import random
import re
import sys
from dataclasses import dataclass, field

import name_lists as names
from corpus_file import FOLDER, one_of, words, write_or_check

SEED = 2021
SIZES = {"train": 6000, "validation": 600}
SENTENCES = (3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 8)  # one of these
SLIPS = 0.2  # the share of questions with a slip of the tongue
UNSEEN_TOPICS = ("biography of an artist", "river", "invention", "railway", "newspaper")  # in training
UNSEEN = 0.5  # the share of the validation that is about them

VILLAGE_STARTS = names.listed("""Alder, Black, Stone, Wester, Raven, Linden, Hart, Mill, Thorn, Winter, Ash, Elm, Otter,
    Falken, Rosen, Silver, Kirk, Holm, Nord, Oster, Salt, Wolf, Swan, Green, Bram, Carl, Eller, Grim, Hazel, Marl""")
VILLAGE_ENDS = names.listed("ford, burg, ton, mere, field, wick, dale, haven, bridge, stead, holt, minster")
VILLAGES = [start + end for start in VILLAGE_STARTS for end in VILLAGE_ENDS]
LANDS = [start + end for start in VILLAGE_STARTS for end in ("mark", "land", "onia")]
BEASTS = [f"{start.lower()} {end}" for start in VILLAGE_STARTS for end in ("martin", "thrush", "hare", "goat", "finch")]
MINERALS = [start.rstrip("e") + end for start in VILLAGE_STARTS for end in ("ite", "elite", "anite")]
WORKS = [
    f"The {first} {second}"
    for first in words(
        "Silent Glass Red Blue Long Last Paper Salt Winter Golden Hidden Broken Empty Second Burning Lost"
    )
    for second in words(
        "Harbour Orchard Staircase Crown Ferry Clockmaker Frost Door Lighthouse Garden Letter Bridge River"
    )
]
SHIPS = [
    f"the {first} {second}"
    for first in words("Northern Southern Royal Brave Swift Black White Silver Proud Lucky Eastern Little")
    for second in words("Star Eagle Swan Hope Bear Queen Petrel Fortune Dolphin Rose Lion Pearl")
]
PRIZES = [f"the {start} {end}" for start in VILLAGE_STARTS for end in ("Medal", "Prize", "Award", "Cup", "Ribbon")]
MONTHS = words("January February March April May June July August September October November December")
COINS = words("dollars francs crowns guilders pounds")
FEW = words("two three four five six seven eight nine ten eleven twelve")

PHRASES = {  # kinds of things
    "product": """bicycles, sewing machines, window glass, printing presses, paper, woollen cloth, steam pumps,
        clocks, pianos, canned fish, chocolate, soap, tractors, rubber tyres, light bulbs, shoes, porcelain,
        typewriters, cement, railway carriages, fishing nets, cameras, hats, matches, radios, leather gloves, water
        turbines, telescopes""",
    "goods": """salt, timber, wool, wine, olive oil, iron ore, copper, silk, spices, grain, amber, tin, furs,
        herring, cotton, tea, coffee, marble, coal, silver, honey, linen, cheese, sugar, pottery, tobacco""",
    "cause": """a shortage of coal, the bad harvest, a quarrel between the owners, rising costs, the lack of
        drinking water, a fire in the main hall, an outbreak of cholera, the heavy rain, a dispute over wages, the
        fall in grain prices, damage to the foundations, the death of the king, an earthquake, the threat of war, poor
        ticket sales, a broken dam, the loss of the fleet, complaints from local farmers, a change in the law, the
        weakness of the ice""",
    "purpose": """to improve trade, to train engineers, to protect the harbour, to teach music to poor children, to
        reduce taxes, to drain the marshes, to help sailors, to study the stars, to carry coal to the coast, to print
        cheap books, to feed the army, to attract visitors, to collect old songs, to fight malaria, to honour the
        dead, to supply the town with water""",
    "subject": """mathematics, botany, medicine, law, astronomy, chemistry, theology, geology, philosophy,
        engineering, music, architecture, history, zoology, economics, anatomy, physics, languages, painting,
        geography""",
    "style": """the Gothic style, the Baroque style, the Romanesque style, the Renaissance style, Art Nouveau, the
        neoclassical style, the modernist style, the Moorish style, the Tudor style""",
    "animal": """wolves, otters, brown bears, storks, wild goats, salmon, beavers, eagles, seals, owls, foxes,
        lynxes, herons, tortoises, bats, wild boar, cranes, trout, badgers, antelopes""",
    "plant": """pine trees, cork oaks, wild orchids, olive trees, reeds, heather, palm trees, birches, ferns,
        lavender, beech forest, water lilies, mosses, juniper bushes, almond trees, vines""",
    "food": """insects, berries, small fish, roots, seeds, fallen fruit, mice, leaves, snails, nectar, mushrooms,
        crabs, acorns, earthworms, frogs, grass, bark, eggs""",
    "device": """a steam valve, a safety lamp, a calculating machine, a water filter, a glass lens, an electric
        bell, a diving suit, a wind gauge, a loom, a seed drill, a fire pump, a pocket compass, a letter lock, a snow
        plough, a milk separator, a tide clock, a folding ladder, a reading machine""",
    "army": """cavalry, archers, light infantry, heavy artillery, pikemen, war elephants, mounted scouts,
        mercenaries, engineers, musketeers, crossbowmen, militia, grenadiers, dragoons""",
    "part": """its yellow beak, its long tail, the white stripe on its back, its webbed feet, its loud call, its
        curved horns, its striped wings, its thick fur, its red crest, its large ears, its blue eggs, its bushy tail""",
    "symptom": """a high fever, a red rash, swollen joints, a dry cough, loss of memory, blurred vision, severe
        headaches, weak muscles, a sore throat, pale skin, chills, stiffness of the neck""",
    "cure": """bark of the willow tree, a mixture of herbs, clean water, sulphur ointment, fresh fruit, quinine, a
        vaccine, bed rest, cold baths, iodine, charcoal tablets, goat's milk""",
    "post": """court physician, professor of anatomy, director of the observatory, head of the city archive, chief
        engineer, royal librarian, secretary of the academy, editor of the journal, master of the mint, inspector of
        schools, bishop, mayor, governor, ambassador, keeper of the gardens, treasurer""",
    "instrument": """violin, flute, organ, cello, piano, harp, trumpet, clarinet, lute, oboe, guitar, bassoon,
        viola, horn""",
    "colour": """dark blue, bright red, green and white, black and gold, pale yellow, orange, purple, white,
        silver, crimson""",
    "metal": """iron, copper, lead, zinc, nickel, titanium, calcium, sodium, aluminium, cobalt, manganese,
        magnesium, silicon""",
    "use": """glass making, fireworks, ceramic glazes, watch batteries, printing ink, optical lenses, fertiliser,
        dental fillings, welding rods, signal lamps, paint, jewellery, water treatment, jet engines""",
    "stone": """red brick, white limestone, grey granite, sandstone, oak and iron, concrete, pink marble, yellow
        tiles, black slate, rough stone""",
}
PHRASES = {kind: names.listed(text) for kind, text in PHRASES.items()}
CLASSES = dict.fromkeys(PHRASES, "thing") | {
    kind: name
    for name, kinds in {
        "thing": "beast mineral work ship prize",
        "place": "city country region river sea lake village land",
        "organisation": "firm school club paper press label bank",
        "person": "person man woman",
        "number": "count big few tally",
        "measure": "length height days weeks",
        "money": "money fee",
    }.items()
    for kind in words(kinds)
}
"""Kinds that are candidates for each other; all others (year, date, …) only for themselves."""

SLOT = re.compile(r"\{(\w+)(?:\.(\w))?\}")
NOUN = re.compile(r"\bthe ([a-z]+)\b(?! of)")
PRONOUNS = {"he": "she", "his": "her", "him": "her", "He": "She", "His": "Her"}
REPAIRS = words(
    "no_wait no I_mean sorry or_rather um_I_mean er,_no no,_scratch_that uh_sorry actually_no oops_I_mean well_no "
    "no_make_that excuse_me I_meant_to_say wait_no"
)


@dataclass
class Fact:
    """A sentence in several wordings, and the questions that each of its slots answers."""

    wordings: list[str] = field(default_factory=list)
    questions: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Topic:
    name: str
    subject: str
    stand_ins: list[str]
    earliest: int  # year
    facts: list[Fact] = field(default_factory=list)


def topics() -> list[Topic]:
    """The topics as they are written in ``span_topics.txt``."""
    read: list[Topic] = []
    for line in filter(None, (FOLDER / "span_topics.txt").read_text(encoding="utf-8").split("\n")):
        mark, text = line[:2], line[2:]
        if mark == "= ":
            name, subject, stand_ins, earliest = text.split(" | ")
            read.append(Topic(name, subject, stand_ins.split(" / "), int(earliest)))
        elif mark == "+ ":
            read[-1].facts.append(Fact([text]))
        elif mark == "~ ":
            read[-1].facts[-1].wordings.append(text)
        else:
            slot, questions = line.split("? ", 1)
            read[-1].facts[-1].questions[slot] = questions.split(" / ")
    return read


class Names:
    """The names of a split."""

    def __init__(self, split: str) -> None:
        def dealt(listed: list[str]) -> list[str]:
            return names.dealt(listed, split)

        villages, stems = dealt(VILLAGES), dealt(names.COMPANY_STEMS)
        self.first = {gender: dealt(listed) for gender, listed in names.FIRST.items()}
        self.last = dealt(names.LAST)
        self.lists = {
            "city": dealt(names.CITIES), "country": dealt(names.COUNTRIES), "region": dealt(names.REGIONS),
            "river": dealt(names.RIVERS), "sea": dealt(names.SEAS), "village": villages, "land": dealt(LANDS),
            "lake": [f"Lake {name}" for name in villages], "beast": dealt(BEASTS), "mineral": dealt(MINERALS),
            "language": names.LANGUAGES, "nation": names.NATIONS, "month": MONTHS,
            "firm": [f"{stem} {kind}" for stem in stems for kind in names.COMPANY_FIELDS],
            "label": [f"{stem} Records" for stem in stems], "bank": [f"{stem} Bank" for stem in stems],
            "press": [f"{stem} {kind}" for stem in stems for kind in ("Press", "Books")],
            "school": [f"{name} {kind}" for name in villages for kind in ("University", "College", "Institute")],
            "club": [f"{name} {kind}" for name in villages for kind in ("United", "Rovers", "City", "Wanderers")],
            "paper": [f"the {name} {kind}" for name in villages for kind in ("Herald", "Courier", "Gazette", "Post")],
            "work": dealt(WORKS), "ship": dealt(SHIPS), "prize": dealt(PRIZES),
            **PHRASES,
        }  # fmt: skip


class Passage:
    """One passage: its slots' values, its text, and where in the text each slot stands."""

    def __init__(self, topic: Topic, listed: Names, draw: random.Random) -> None:
        self.topic, self.listed, self.draw = topic, listed, draw
        self.values: dict[str, str] = {}
        self.genders: dict[str, str] = {}
        self.year = topic.earliest + self.number(0, 60)
        self.stride = 9 if topic.earliest > 1800 else 20  # at most, between one year and the next
        self.text = ""
        self.places: dict[str, int] = {}  # slot → where in the text it first stands
        first, *others = topic.facts
        wanted = min(one_of(draw, SENTENCES), len(topic.facts))
        while len(others) > wanted - 1:
            others.remove(one_of(draw, others))
        self.facts = [first, *others]
        self.value(*topic.subject.split("."))
        for fact in topic.facts:  # in the order of time, whether told or not
            for slot in SLOT.findall(" ".join(fact.wordings)):
                self.value(*slot)
        if draw.random() < 0.3:
            others = [others.pop(int(draw.random() * len(others))) for _ in range(len(others))]
        for fact in [first, *others]:
            self.tell(self.chosen(one_of(draw, fact.wordings)))

    def chosen(self, text: str) -> str:
        return re.sub(r"\[([^\[\]]*)\]", lambda options: one_of(self.draw, options[1].split("|")), text)

    def number(self, low: int, high: int) -> int:
        return low + int(self.draw.random() * (high - low + 1))

    def value(self, kind: str, key: str) -> str:
        """The value of a slot; no two slots of a passage share one."""
        if kind == "it":
            subject = self.value(*self.topic.subject.split("."))
            return one_of(self.draw, [subject, *self.topic.stand_ins]) if self.text else subject
        if kind in ("first", "last") or kind in PRONOUNS:
            return self.about_a_person(kind, key)
        slot = f"{kind}.{key}"
        while slot not in self.values:
            made = self.made(kind, key)
            if made not in self.values.values():
                self.values[slot] = made
        return self.values[slot]

    def about_a_person(self, kind: str, key: str) -> str:
        kinds = [kind for kind in ("man", "woman") if f"{kind}.{key}" in self.values]
        first, _, last = self.value(kinds[0] if kinds else "person", key).partition(" ")
        if kind in PRONOUNS:
            return kind if self.genders[key] == "he" else PRONOUNS[kind]
        return first if kind == "first" else last

    def made(self, kind: str, key: str) -> str:
        draw, number = self.draw, self.number
        if kind in ("person", "man", "woman"):
            self.genders[key] = {"man": "he", "woman": "she"}.get(kind) or one_of(draw, ("he", "she"))
            return f"{one_of(draw, self.listed.first[self.genders[key]])} {one_of(draw, self.listed.last)}"
        if kind == "year":
            self.year += number(1, self.stride)
            return str(self.year)
        if kind == "few":
            return one_of(draw, FEW)
        if kind in self.listed.lists:
            return one_of(draw, self.listed.lists[kind])
        return {
            "date": lambda: f"{number(1, 28)} {one_of(draw, MONTHS)}",
            "count": lambda: str(number(13, 980)),
            "big": lambda: f"{number(1, 90)},{number(0, 9)}00",
            "length": lambda: f"{number(13, 640)} {one_of(draw, ('km', 'kilometres', 'miles'))}",
            "height": lambda: f"{number(6, 95)} {one_of(draw, ('metres', 'feet'))}",
            "days": lambda: f"{one_of(draw, FEW)} {one_of(draw, ('hours', 'days', 'weeks', 'months'))}",
            "money": lambda: f"{number(2, 90)}{one_of(draw, (',000', '0', ' million'))} {one_of(draw, COINS)}",
            "fee": lambda: f"{number(2, 40)} {one_of(draw, COINS)}",
            "tally": lambda: str(number(4, 38)),
            "weeks": lambda: f"{one_of(draw, FEW)} {one_of(draw, ('weeks', 'months'))}",
            "percent": lambda: f"{number(2, 90)} percent",
            "score": lambda: f"{number(1, 6)}–{number(0, 5)}",
            "ordinal": lambda: one_of(draw, words("first second third fourth fifth sixth seventh eighth ninth tenth")),
        }[kind]()

    def tell(self, wording: str) -> None:
        """One more sentence."""
        self.text += " " if self.text else ""
        begin = len(self.text)
        for i, part in enumerate(re.split(r"(\{[^}]*\})", wording)):
            if i % 2:
                kind, key = SLOT.fullmatch(part).groups()
                value = self.value(kind, key)
                if f"{kind}.{key}" in self.values:
                    self.places.setdefault(f"{kind}.{key}", len(self.text))
                self.text += value
            else:
                self.text += part
        self.text = self.text[:begin] + self.text[begin].upper() + self.text[begin + 1 :]

    def filled(self, question: str) -> str:
        text = SLOT.sub(lambda slot: self.value(*slot.groups()), self.chosen(question))
        text = re.sub(r" +(?=[ ?])", "", text)
        return text[0].upper() + text[1:]

    def questions(self) -> list[tuple[str, str]]:
        """(slot that answers, question) for all that can be asked here.

        The answer stands once in the text, beside at least one other candidate that the question does not name; and
        whatever the question names stands in the text too.
        """
        asked = []
        for fact in self.facts:
            for slot, wordings in fact.questions.items():
                wording = one_of(self.draw, wordings)
                question = self.filled(wording)
                named = {f"{kind}.{key}" for kind, key in SLOT.findall(wording)} & {*self.values}
                if slot in self.places and named <= {*self.places} and len(self.candidates(slot, question)) > 1:
                    once = self.text.lower().count(self.values[slot].lower()) == 1
                    if once and self.values[slot] not in question:
                        asked.append((slot, question))
        return asked

    def candidates(self, slot: str, question: str) -> list[str]:
        """The slots of the same class, in the order of the text, that the question does not name."""

        def of(slot: str) -> str:
            kind = slot.split(".")[0]
            return CLASSES.get(kind, kind)

        same = [other for other in self.places if of(other) == of(slot) and self.values[other] not in question]
        return sorted(same, key=self.places.__getitem__)

    def slip(self, slot: str, question: str, others: list[str]) -> str:
        """The question with a slip of the tongue: another name, another noun, or the start of another question, and
        then the repair."""
        repair = one_of(self.draw, REPAIRS).replace("_", " ")
        repair = one_of(self.draw, (f", {repair}, ", f" {repair} ", f", {repair} "))
        rivals = [
            (value, self.values[rival])
            for named, value in self.values.items()
            if value in question and named in self.places
            for rival in self.candidates(named, question)
            if rival != slot
        ]
        chance = self.draw.random()
        if rivals and chance < 0.5:
            value, rival = one_of(self.draw, rivals)
            before, after = question.split(value, 1)
            if before:
                return f"{before}{rival}{repair}{value}{after}"
        articles = [(noun, other) for noun in NOUN.findall(question) for text in others for other in NOUN.findall(text)]
        articles = [(noun, other) for noun, other in articles if noun != other]
        if articles and chance < 0.7:
            noun, other = one_of(self.draw, articles)
            return question.replace(f"the {noun}", f"the {other}{repair}the {noun}", 1)
        false_start = one_of(self.draw, others).rstrip("?").split()
        kept = 1 if chance > 0.85 else self.number(min(2, len(false_start)), len(false_start))
        if not question.startswith(tuple(self.values.values())):  # a name keeps its capital
            question = question[0].lower() + question[1:]
        return " ".join(false_start[:kept]) + repair + question


def rows() -> list[dict[str, str | int]]:
    """Two questions to each passage, of different answers."""
    draw, seen, result = random.Random(SEED), set(), []
    read = topics()
    known = [topic for topic in read if topic.name not in UNSEEN_TOPICS]
    unseen = [topic for topic in read if topic.name in UNSEEN_TOPICS]
    for split, size in SIZES.items():
        listed, made = Names(split), 0
        while made < size:
            new = split == "validation" and draw.random() < UNSEEN
            passage = Passage(one_of(draw, unseen if new else known), listed, draw)
            possible = passage.questions()
            if len(possible) < 2 or passage.text in seen:
                continue
            seen.add(passage.text)
            one = one_of(draw, possible)
            rest = [other for other in possible if other[0] != one[0]]
            alike = [other for other in rest if other[0] in passage.candidates(one[0], one[1])]
            pair = [one, one_of(draw, alike if alike and draw.random() < 0.6 else rest)]
            for slot, question in pair:
                start = passage.places[slot]
                if draw.random() < SLIPS:
                    others = [text for other, text in possible if other != slot and passage.values[slot] not in text]
                    question = passage.slip(slot, question, others) if others else question
                answer = passage.text[start : start + len(passage.values[slot])]
                result.append(
                    {"split": split, "question": question, "passage": passage.text, "answer": answer, "start": start}
                )
                made += 1
    return result


if __name__ == "__main__":
    sys.exit(write_or_check("spans.csv", rows()))
