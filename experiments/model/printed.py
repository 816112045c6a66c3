"""What the paper prints.

Test errors on public data at ε = 1 with their 90 % intervals, and errors without privacy on
simulated data.
"""

from experiments.show.summary import Mean

METHODS = ("normal-x", "fixed-s", "fixed-s-fast", "bernstein-sheldon", "ada-ssp")
HOLDERS = (1, 5, 10)

# In units of 1e-4, per set and J, in the order of METHODS: mean, and the interval of the mean.
_MEANS = {
    "PowerPlant": [(129, 129, 129, 128, 139), (133, 134, 134, 136, 235), (142, 143, 143, 143, 351)],
    "BikeSharing": [(24, 21, 21, 20, 107), (174, 45, 45, 86, 382), (812, 82, 82, 137, 526)],
    "AirQuality": [(60, 57, 57, 62, 66), (142, 100, 99, 130, 227), (985, 117, 117, 216, 314)],
    "3droad": [(229,) * 5] * 3,
}
_INTERVALS = {
    "PowerPlant": [
        ((128, 129), (128, 129), (128, 129), (128, 129), (137, 140)),
        ((132, 135), (132, 136), (132, 136), (135, 138), (234, 236)),
        ((139, 145), (140, 146), (140, 146), (141, 146), (349, 353)),
    ],
    "BikeSharing": [
        ((21, 27), (18, 24), (18, 24), (17, 22), (106, 108)),
        ((137, 210), (41, 49), (40, 49), (76, 95), (380, 383)),
        ((671, 954), (72, 92), (72, 92), (116, 158), (524, 527)),
    ],
    "AirQuality": [
        ((51, 69), (48, 66), (48, 66), (53, 71), (65, 67)),
        ((109, 175), (89, 100), (89, 109), (109, 151), (226, 229)),
        ((733, 1236), (99, 135), (99, 135), (175, 257), (313, 315)),
    ],
}
REAL = {
    (name, holders, method): Mean(
        _MEANS[name][row][column] / 1e4,
        *(end / 1e4 for end in _INTERVALS.get(name, [[(229, 229)] * 5] * 3)[row][column]),
    )
    for name in _MEANS
    for row, holders in enumerate(HOLDERS)
    for column, method in enumerate(METHODS)
}

NON_PRIVATE = {
    ("estimation", 2): 2.92e-5,
    ("estimation", 5): 1.54e-5,
    ("prediction", 2): 9.60e-5,
    ("prediction", 5): 4.19e-5,
}
