"""Make ``roles.csv``: who does it, and to whom is it done?

    the doctor followed the teacher            → doctor: agent · teacher: patient
    the doctor was followed by the teacher     → doctor: patient · teacher: agent

Every pair of people occurs in both orders, in the active and in the passive, and both nouns are asked about. So neither
the noun nor the voice alone tells; the place alone tells three of four, as in a passive the second noun stands
elsewhere. No person occurs in both splits; one action occurs in both, two are new in the test.

``python data/make_roles.py`` writes the file and its line in SHA256SUMS; ``--check`` only compares the bytes.
"""

import itertools
import sys

from corpus_file import words, write_or_check

PEOPLE = {
    "train": words("doctor teacher king sailor singer painter woman"),
    "test": words("girl boy nurse farmer lawyer"),
}
ACTIONS = {"train": words("followed watched"), "test": words("watched helped visited")}


def rows() -> list[dict[str, str | int]]:
    """Four rows for each ordered pair and action: both nouns of the active sentence, then both of the passive one."""
    result = []
    for split, people in PEOPLE.items():
        for (one, other), action in itertools.product(itertools.permutations(people, 2), ACTIONS[split]):
            active, passive = f"the {one} {action} the {other}", f"the {one} was {action} by the {other}"
            asked = [(active, one, "agent"), (active, other, "patient"), (passive, one, "patient")]
            for sentence, word, role in [*asked, (passive, other, "agent")]:
                place = sentence.split().index(word)
                result.append({"split": split, "sentence": sentence, "word": word, "place": place, "role": role})
    return result


if __name__ == "__main__":
    sys.exit(write_or_check("roles.csv", rows()))
