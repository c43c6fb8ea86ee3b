"""Words with two meanings, in sentences: does a vector tell the meanings apart?

`SENSES`: word → two senses → sentences with that word. `PERSONS`: what two people say in the lecture S0, in which eight
words mean different things. `USES`: each of these words in other sentences, as A means it and as B means it.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

SENSES: dict[str, dict[str, list[str]]] = {
    "bank": {
        "money": [
            "She opened an account at the bank on Monday.",
            "The bank refused to lend him any money.",
            "He paid his wages into the bank every month.",
            "A robber ran out of the bank with a bag of cash.",
            "The bank raised the interest on our loan.",
            "My aunt works as a clerk in a bank.",
        ],
        "river": [
            "We sat on the bank and watched the boats go by.",
            "Willows grow along the bank of the stream.",
            "The canoe ran aground on the muddy bank.",
            "An otter climbed up the bank with a fish.",
            "The flood washed away part of the bank.",
            "They fished all day from the grassy bank.",
        ],
    },
    "bat": {
        "animal": [
            "A bat flew out of the cave at dusk.",
            "The bat sleeps all winter, hanging upside down.",
            "With its ears a bat finds moths in the dark.",
            "We found a tiny bat under the roof of the barn.",
            "The bat spread its wings and left the tree.",
            "A bat feeds its young with milk.",
        ],
        "sport": [
            "He swung the bat and missed the ball.",
            "She bought a new wooden bat for the match.",
            "The player dropped his bat and ran to first base.",
            "My bat broke when I hit the ball.",
            "Hold the bat with both hands before the pitch.",
            "The captain raised his bat to thank the crowd.",
        ],
    },
    "spring": {
        "season": [
            "The cherry trees bloom in spring.",
            "After a long winter spring came at last.",
            "Farmers sow their corn in early spring.",
            "Last spring it rained for weeks.",
            "The birds return from the south every spring.",
            "Our term begins in spring and ends in summer.",
        ],
        "coil": [
            "The mattress has a broken spring.",
            "A small spring pushes the button up again.",
            "He wound the spring of the old clock.",
            "The spring in the lock has lost its force.",
            "Pull the spring and let it snap back.",
            "The toy jumps because of a metal spring inside.",
        ],
    },
    "bright": {
        "light": [
            "The lamp is too bright for my eyes.",
            "A bright star stood above the hill.",
            "Bright sunshine came in through the window.",
            "The screen was so bright that it hurt.",
            "They painted the kitchen a bright yellow.",
            "The fire threw a bright glow on the wall.",
        ],
        "clever": [
            "She is a bright student who learns quickly.",
            "The bright boy solved the puzzle in a minute.",
            "He was bright enough to see through the trick.",
            "Our teacher calls her the most bright child in class.",
            "A bright young lawyer found the mistake.",
            "Only a bright pupil could answer such a question.",
        ],
    },
}

PERSONS: dict[str, list[str]] = {  # after S0's slide
    "A": [
        "I feel fine, even great!",
        "Earlier, I played the game Yahtzee with my partner.",
        "I could not get that die to roll a 1!",
        "Now I'm lying on my bed for a rest.",
    ],
    "B": [
        "My life is a great mess! I'm having a very hard time being happy.",
        "My business partner was lying to me.",
        "He was trying to game the system and played me.",
        "I think I am going to die, he left and now I have to pay the rest of his fine.",
    ],
}

USES: dict[str, dict[str, list[str]]] = {
    "great": {
        "A": ["I slept well and feel great today.", "What a great party, we all had fun!"],
        "B": ["There was a great crowd in the street.", "The storm did great damage to the town."],
    },
    "fine": {
        "A": ["I am fine, thank you.", "He was ill, but now he is fine again."],
        "B": ["She got a fine for parking there.", "The court made him pay a fine."],
    },
    "partner": {
        "A": ["My partner and I have been married for years.", "He lives together with his partner."],
        "B": ["The firm took on a new partner.", "She is a partner in a law company."],
    },
    "played": {
        "A": ["The children played cards all evening.", "We played chess after dinner."],
        "B": ["I was cheated, the salesman played me.", "She felt used: he had played her for a fool."],
    },
    "game": {
        "A": ["Monopoly is a game for the whole family.", "We bought a new board game with dice."],
        "B": ["They tried to game the rules and cheat on tax.", "Some firms game the market with tricks."],
    },
    "die": {
        "A": ["Throw the die and move your piece.", "The die shows a six."],
        "B": ["Without water the plants will die.", "The doctor feared that she would die."],
    },
    "lying": {
        "A": ["The cat is lying on the sofa.", "She was lying in the grass and slept."],
        "B": ["The witness was lying to the judge.", "Do not trust him, he is lying again."],
    },
    "rest": {
        "A": ["After the walk I need a rest.", "Lie down and have a rest."],
        "B": ["Keep the rest of the money.", "She ate half the cake and left the rest."],
    },
}


def told_apart(x: Tensor, sense: Tensor) -> float:
    """The share of vectors that lie nearer (by the cosine) to the mean of their own sense than to that of the other.

    x (n, d), sense (n), 0 or 1. Each one is left out of the means with which it is compared.
    """
    right = 0
    for i in range(len(x)):
        others = torch.arange(len(x)) != i
        means = torch.stack([x[others & (sense == s)].mean(dim=0) for s in (0, 1)])
        right += int(F.cosine_similarity(x[i], means, dim=-1).argmax() == sense[i])
    return right / len(x)
