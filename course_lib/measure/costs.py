r"""What training costs: operations, time, energy, carbon.

$$\text{operations} \approx 6 N D$$

for $N$ parameters and $D$ tokens: each token uses each parameter once forward (a multiplication and an addition) and
twice backward. The way from energy to carbon is that of Strubell, Ganesh and McCallum (2019), whose table S3 shows.
"""

OVERHEAD = 1.58  # energy of a whole data centre for each unit that its computers take (the average in 2018)
POUNDS_PER_KWH = 0.954  # of CO₂ and the like, for electricity of the United States' mix in 2018


def training_operations(parameters: float, tokens: float) -> float:
    """6 N D: multiplications and additions of a training on ``tokens`` tokens."""
    return 6 * parameters * tokens


def utilisation(operations: float, chips: int, hours: float, peak: float) -> float:
    """The share of what the chips could have done: ``peak`` is operations a second of one chip."""
    return operations / (chips * hours * 3600 * peak)


def energy(watts: float, hours: float) -> float:
    """Kilowatt-hours, those of the building included."""
    return watts * hours / 1000 * OVERHEAD


def carbon(kilowatt_hours: float) -> float:
    """Pounds of CO₂ equivalent (one pound is 0.454 kg)."""
    return kilowatt_hours * POUNDS_PER_KWH
