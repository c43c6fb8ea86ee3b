"""Make ``stories.csv``: small worlds in which people walk about, take things and put them down, and a question.

In the spirit of the bAbI tasks (Weston et al. 2015), with words and rules of our own. Five kinds of question:

- *one fact*: where is joe? The last place that he went to.
- *two facts*: where is the milk? Who had it last, and where was that person: now, if he has it still; then, if he has
  put it down.
- *three facts*: the milk is in the bag, joe has the bag, joe is in the kitchen. There are two bags, and two people have
  them, so that none of the three facts can be done without. (Here bags are not put down again.)
- *yes or no*: is joe in the kitchen?
- *list*: what does joe have? All that he has taken and not put down.

``facts`` are the places of the supporting facts in the story, counted from 0, in the order in which one needs them.

``python data/make_stories.py`` writes the file and its line in SHA256SUMS; ``--check`` only compares the bytes.
"""

import random
import sys

from corpus_file import one_of, words, write_or_check

SEED = 2016
SIZES = {  # stories of each kind to train and to test
    "one fact": (700, 250),
    "two facts": (2000, 500),
    "three facts": (2000, 500),
    "yes or no": (600, 200),
    "list": (500, 200),
}
LENGTHS = range(6, 10)  # sentences of a story; two more where two say what is in which bag
PEOPLE, PLACES = words("joe mary anna fred"), words("kitchen bathroom bedroom garden office")
THINGS, BAGS = words("milk apple book ball"), words("bag box basket")
GO, TAKE, PUT = ("went to", "moved to", "walked to"), ("picked up", "took"), ("put down", "dropped")


def some(draw: random.Random, choices: list[str], count: int) -> list[str]:
    """Several different ones."""
    chosen: list[str] = []
    while len(chosen) < count:
        chosen.append(one_of(draw, [choice for choice in choices if choice not in chosen]))
    return chosen


class World:
    """What happens, sentence by sentence, and which sentence tells what."""

    def __init__(self, kind: str, draw: random.Random) -> None:
        self.kind, self.draw = kind, draw
        self.people, self.things = some(draw, PEOPLE, 3), some(draw, THINGS, 2)
        self.story: list[str] = []
        self.inside: dict[str, tuple[str, int]] = {}  # thing → its bag, and the fact that says so
        self.place: dict[str, tuple[str, int]] = {}  # person → place, fact
        self.holder: dict[str, tuple[str, int]] = {}  # thing or bag → person, fact
        self.left: dict[str, tuple[int, str, int]] = {}  # thing or bag → fact that it was put down, place, its fact
        self.movable = self.things
        if kind == "three facts":
            self.movable = some(draw, BAGS, 2)
            for thing, bag in zip(self.things, self.movable, strict=True):
                self.inside[thing] = (bag, len(self.story))
                self.story.append(f"the {thing} is in the {bag}")
        for person in self.people:
            self.go(person)

    def go(self, person: str) -> None:
        here = self.place.get(person, ("", 0))[0]
        place = one_of(self.draw, [place for place in PLACES if place != here])
        self.place[person] = (place, len(self.story))
        self.story.append(f"{person} {one_of(self.draw, GO)} the {place}")

    def happen(self) -> None:
        """One more sentence."""
        person, chance = one_of(self.draw, self.people), self.draw.random()
        free = [thing for thing in self.movable if thing not in self.holder]
        his = [thing for thing in self.movable if self.holder.get(thing, ("",))[0] == person]
        if self.kind in ("two facts", "list") and his and chance < 0.35:
            thing = one_of(self.draw, his)
            del self.holder[thing]
            self.left[thing] = (len(self.story), *self.place[person])
            self.story.append(f"{person} {one_of(self.draw, PUT)} the {thing}")
        elif self.kind not in ("one fact", "yes or no") and free and chance < 0.5:
            thing = one_of(self.draw, free)
            self.left.pop(thing, None)
            self.holder[thing] = (person, len(self.story))
            self.story.append(f"{person} {one_of(self.draw, TAKE)} the {thing}")
        else:
            self.go(person)

    def where(self, thing: str) -> tuple[str, list[int]] | None:
        """The place of a thing or bag, and the facts that tell it; None if nobody has touched it."""
        if thing in self.holder:
            person, taken = self.holder[thing]
            return self.place[person][0], [taken, self.place[person][1]]
        if thing in self.left:
            put, place, went = self.left[thing]
            return place, [put, went]
        return None

    def ask(self) -> tuple[str, str, list[int]] | None:
        """Question, answer and supporting facts; None if there is nothing to ask."""
        holders = [person for person, _ in self.holder.values()]
        person = one_of(self.draw, holders if holders and self.draw.random() < 0.7 else self.people)
        place, fact = self.place[person]
        if self.kind == "one fact":
            return f"where is {person}", place, [fact]
        if self.kind == "yes or no":
            asked = one_of(self.draw, [place, one_of(self.draw, [p for p in PLACES if p != place])])
            return f"is {person} in the {asked}", "yes" if asked == place else "no", [fact]
        if self.kind == "list":
            his = {thing: fact for thing, (holder, fact) in self.holder.items() if holder == person}
            return f"what does {person} have", " and ".join(sorted(his)) or "nothing", sorted(his.values())
        thing = one_of(self.draw, self.things)
        bag, said = self.inside.get(thing, (thing, None))
        found = self.where(bag)
        if found is None or (self.inside and len(set(holders)) < 2):
            return None
        return f"where is the {thing}", found[0], [*([said] if self.inside else []), *found[1]]


def row(kind: str, draw: random.Random) -> dict[str, str]:
    """One story; drawn again until there is something to ask."""
    while True:
        world = World(kind, draw)
        length = one_of(draw, LENGTHS) + len(world.inside)
        while len(world.story) < length:
            world.happen()
        asked = world.ask()
        if asked:
            question, answer, facts = asked
            story = ". ".join(world.story)
            return {"story": story, "question": question, "answer": answer, "facts": " ".join(map(str, facts))}


def rows() -> list[dict[str, str]]:
    """No story twice."""
    draw, seen, result = random.Random(SEED), set(), []
    for kind, sizes in SIZES.items():
        for split, size in zip(("train", "test"), sizes, strict=True):
            made = 0
            while made < size:
                new = row(kind, draw)
                if new["story"] not in seen:
                    seen.add(new["story"])
                    result.append({"split": split, "kind": kind, **new})
                    made += 1
    return result


if __name__ == "__main__":
    sys.exit(write_or_check("stories.csv", rows()))
