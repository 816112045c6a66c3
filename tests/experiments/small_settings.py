"""Settings of every experiment that end within a minute."""

SMALL = {
    "simulated": {
        "rows": 20_000,
        "columns": [2],
        "holders": [2],
        "epsilons": [1.0, 10.0],
        "runs": 8,
        "iterations": 400,
        "gradient_iterations": 400,
        "one_data_set": False,
    },
    "one": {
        "rows": 5_000,
        "columns": [2],
        "holders": [1],
        "epsilons": [1.0],
        "runs": 4,
        "iterations": 200,
        "gradient_iterations": 200,
        "one_data_set": True,
    },
    "real": {"sets": ["PowerPlant"], "holders": [5], "epsilon": 1.0, "runs": 6, "iterations": 400}
    | {"mixing_metropolis": 400, "mixing_gradient": 400},
    "runtimes": {"columns": [1], "holders": [1], "rows": 500, "iterations": 200, "repeats": 1},
    "audit": {"epsilons": [1.0], "deltas": [1e-4], "draws": 100_000, "confidence": 0.99},
    "mmd": {"bandwidth": 0.1},
}
