"""Make ``aligned.csv``: English sentences, their Spanish translations, and which word goes with which.

A small grammar writes both sides at once, so the true alignment is known. It covers what makes alignments worth
looking at: adjectives that change places with their noun (*the red house*, *la casa roja*), gender and number (*los
libros rojos*), an English passive that is active in Spanish (*the book was read by the girl*, *la niña leyó el libro*),
the personal *a*, *al* and *del*, negation (*did not sleep*, *no durmió*), and pronouns that Spanish leaves out. Clauses
are joined to sentences of 4 to 24 English words, as many of each length.

``links`` are pairs *English place-Spanish place*: ``3-4`` is sure, ``3?4`` possible (a word that the other tongue does
without, such as *was* in a passive, or the personal *a*).

``python data/make_aligned.py`` writes the file and its line in SHA256SUMS; ``--check`` only compares the bytes.
"""

import random
import sys

from corpus_file import one_of, write_or_check

SEED = 2015
LENGTHS = range(4, 25)  # English words
SIZES = {"train": 240, "validation": 15, "test": 40}  # sentences of each length

# English singular/plural, Spanish singular/plural, gender
NOUNS = {
    "person": """woman/women mujer/mujeres f|man/men hombre/hombres m|girl/girls niña/niñas f|boy/boys niño/niños m|
        doctor/doctors médico/médicos m|teacher/teachers maestra/maestras f|king/kings rey/reyes m|
        queen/queens reina/reinas f|neighbour/neighbours vecino/vecinos m|sailor/sailors marinero/marineros m|
        singer/singers cantante/cantantes f|painter/painters pintora/pintoras f""",
    "animal": """dog/dogs perro/perros m|cat/cats gata/gatas f|horse/horses caballo/caballos m|cow/cows vaca/vacas f|
        bird/birds pájaro/pájaros m|goat/goats cabra/cabras f""",
    "thing": """book/books libro/libros m|letter/letters carta/cartas f|table/tables mesa/mesas f|
        car/cars coche/coches m|boat/boats barco/barcos m|lamp/lamps lámpara/lámparas f|
        hat/hats sombrero/sombreros m|shirt/shirts camisa/camisas f|clock/clocks reloj/relojes m|
        key/keys llave/llaves f|guitar/guitars guitarra/guitarras f|picture/pictures cuadro/cuadros m""",
    "place": """garden/gardens jardín/jardines m|house/houses casa/casas f|school/schools escuela/escuelas f|
        church/churches iglesia/iglesias f|market/markets mercado/mercados m|park/parks parque/parques m|
        beach/beaches playa/playas f|castle/castles castillo/castillos m""",
}
# English; Spanish masculine, feminine (plural: + s, after a consonant + es)
ADJECTIVES = {
    "any": "old viejo vieja|small pequeño pequeña|beautiful hermoso hermosa|new nuevo nueva|white blanco blanca",
    "living": "tall alto alta|tired cansado cansada|happy feliz feliz|sad triste triste|clever listo lista",
    "thing": "red rojo roja|green verde verde|heavy pesado pesada|blue azul azul|broken roto rota",
    "place": "big grande grande|dark oscuro oscura|empty vacío vacía|quiet tranquilo tranquila",
}
# English past, participle; Spanish past singular, plural; what the object may be
TRANSITIVE = """saw seen vio vieron person animal thing place|found found encontró encontraron person animal thing|
    painted painted pintó pintaron person thing place|sold sold vendió vendieron animal thing|
    bought bought compró compraron animal thing|cleaned cleaned limpió limpiaron thing place|
    followed followed siguió siguieron person animal|watched watched miró miraron person animal thing|
    carried carried llevó llevaron animal thing|forgot forgotten olvidó olvidaron person thing place|
    hid hidden escondió escondieron thing animal|loved loved amó amaron person animal place"""
INTRANSITIVE = """slept sleep durmió durmieron|arrived arrive llegó llegaron|sang sing cantó cantaron|
    fell fall cayó cayeron|danced dance bailó bailaron|waited wait esperó esperaron|returned return volvió volvieron"""
WHERE = "in en|near cerca_de|behind detrás_de|opposite frente_a"
ADVERBS = "slowly lentamente|yesterday ayer|often frecuentemente|again otra_vez|quietly tranquilamente|late tarde"
JOINTS = "and y|but pero|because porque|while mientras|when cuando"
THE, A = ("el", "la", "los", "las"), ("un", "una", "unos", "unas")
DETERMINERS = [  # English singular, plural; Spanish by gender and number
    ("the", "the", THE), ("the", "the", THE), ("the", "the", THE), ("a", "some", A),
    ("my", "my", ("mi", "mi", "mis", "mis")), ("this", "these", ("este", "esta", "estos", "estas")),
]  # fmt: skip


def table(text: str) -> list[list[str]]:
    return [entry.split() for entry in text.split("|")]


def plural(adjective: str) -> str:
    if adjective.endswith("z"):
        return f"{adjective[:-1]}ces"
    return adjective + ("s" if adjective[-1] in "aeo" else "es")


class Pair:
    """A sentence in both languages; each Spanish word knows the English words that it goes with."""

    def __init__(self) -> None:
        self.english: list[str] = []
        self.spanish: list[tuple[str, list[int], list[int]]] = []  # word, sure English places, possible ones

    def say(self, *words: str) -> list[int]:
        """English words at the end; returns their places."""
        start = len(self.english)
        self.english += words
        return [*range(start, len(self.english))]


Words = list[tuple[str, list[int], list[int]]]


def noun_phrase(pair: Pair, sort: str, draw: random.Random, used: list[str]) -> tuple[Words, int]:
    """Says it in English; returns the Spanish words (to be placed by the caller) and the number (0 or 1)."""
    one, many, forms = one_of(draw, DETERMINERS)
    number = int(draw.random() < 0.4)
    noun = one_of(draw, [entry for entry in table(NOUNS[sort]) if entry[0] not in used])
    used.append(noun[0])
    english, spanish = noun[0].split("/")[number], noun[1].split("/")[number]
    gender = int(noun[2] == "f")
    adjective = very = None
    if draw.random() < 0.45:
        kinds = {"person": "living", "animal": "living", "thing": "thing", "place": "place"}
        adjective = one_of(draw, table(ADJECTIVES["any"]) + table(ADJECTIVES[kinds[sort]]))
        very = draw.random() < 0.15
    if one == "a" and (adjective and not very and adjective[0][0] in "aeiou"):
        one = "an"  # no noun begins with a vowel
    [determiner] = pair.say((one, many)[number])
    words: Words = [(forms[2 * number + gender], [determiner], [])]
    placed = pair.say(*(["very"] if very else []), *([adjective[0]] if adjective else []))
    words.append((spanish, pair.say(english), []))
    if very:
        words.append(("muy", [placed[0]], []))
    if adjective:
        form = adjective[1 + gender]
        words.append((plural(form) if number else form, [placed[-1]], []))
    return words, number


def after(preposition: str, places: list[int], words: Words) -> Words:
    """A preposition (its last word is *a* or *de* in some) before a noun phrase: a el → al, de el → del."""
    *before, last = preposition.split("_")
    front: Words = [(word, places, []) for word in before]
    if last in ("a", "de") and words[0][0] == "el":
        return [*front, (f"{last}l", words[0][1], places), *words[1:]]
    return [*front, (last, *((places, []) if before or last != "a" else ([], places))), *words]


def clause(pair: Pair, draw: random.Random) -> None:
    """One clause at the end of the pair."""
    used: list[str] = []
    kind = one_of(draw, ("transitive", "transitive", "passive", "intransitive", "denied"))
    sort = "person" if kind == "transitive" else one_of(draw, ("person", "animal"))
    if kind == "passive":
        passive(pair, draw, used)
        return
    if draw.random() < 0.2:
        word, number = one_of(draw, (("he", 0), ("she", 0), ("they", 1)))
        pronoun, subject = pair.say(word), []
    else:
        pronoun, (subject, number) = [], noun_phrase(pair, sort, draw, used)
    pair.spanish += subject
    if kind == "transitive":
        past, _, one, many, *sorts = one_of(draw, table(TRANSITIVE))
        pair.spanish.append(((one, many)[number], pair.say(past), pronoun))
        sort = one_of(draw, sorts)
        verb = len(pair.english) - 1
        thing, _ = noun_phrase(pair, sort, draw, used)
        pair.spanish += after("a", [verb], thing) if sort == "person" else thing
    else:
        past, base, one, many = one_of(draw, table(INTRANSITIVE))
        if kind == "denied":
            did, no = pair.say("did", "not")
            pair.spanish.append(("no", [no], [did]))
        said = pair.say(base if kind == "denied" else past)
        pair.spanish.append(((one, many)[number], said, pronoun))
    if draw.random() < 0.35:
        english, spanish = one_of(draw, table(WHERE))
        places = pair.say(english)
        where, _ = noun_phrase(pair, "place", draw, used)
        pair.spanish += after(spanish, places, where)
    if draw.random() < 0.25:
        english, spanish = one_of(draw, table(ADVERBS))
        places = pair.say(english)
        pair.spanish += [(word, places, []) for word in spanish.split("_")]


def passive(pair: Pair, draw: random.Random, used: list[str]) -> None:
    """the book was read by the girl → la niña leyó el libro"""
    _, participle, one, many, *sorts = one_of(draw, table(TRANSITIVE))
    sort = one_of(draw, sorts)
    thing, number = noun_phrase(pair, sort, draw, used)
    was, said, by = pair.say("were" if number else "was", participle, "by")
    agent, agents = noun_phrase(pair, "person", draw, used)
    first = agent[0]
    pair.spanish += [(first[0], first[1], [by]), *agent[1:], ((one, many)[agents], [said], [was])]
    pair.spanish += after("a", [said], thing) if sort == "person" else thing


def sentence(clauses: int, draw: random.Random) -> Pair:
    pair = Pair()
    for i in range(clauses):
        if i:
            english, spanish = one_of(draw, table(JOINTS))
            pair.spanish.append((spanish, pair.say(english), []))
        clause(pair, draw)
    return pair


def row(pair: Pair) -> dict[str, str]:
    links = [
        f"{i}{mark}{j}"
        for j, (_, sure, possible) in enumerate(pair.spanish)
        for mark, places in (("-", sure), ("?", possible))
        for i in places
    ]
    spanish = " ".join(word for word, _, _ in pair.spanish)
    return {"en": " ".join(pair.english), "es": spanish, "links": " ".join(links)}


def rows() -> list[dict[str, str]]:
    """As many sentences of each length; no English sentence twice."""
    draw, seen, result = random.Random(SEED), set(), []
    for split, size in SIZES.items():
        missing = dict.fromkeys(LENGTHS, size)
        while any(missing.values()):
            new = row(sentence(one_of(draw, (1, 2, 3, 4)), draw))
            length = len(new["en"].split())
            if missing.get(length) and new["en"] not in seen:
                seen.add(new["en"])
                result.append({"split": split, **new})
                missing[length] -= 1
    return result


if __name__ == "__main__":
    sys.exit(write_or_check("aligned.csv", rows()))
