"""The paper's public data sets (UCI), from a folder of files that a user fetched.

None has a header, and the response comes last.

- PowerPlant: power_plant_energy.csv, 4 features.
- BikeSharing: bike_sharing.csv, id and date dropped, 14 features (casual and registered among
  them), the count.
- AirQuality: air_quality.csv, 12 features, response, two empty columns; 9,357 rows, then empty
  ones; −200 means missing.
- 3droad: 3D_spatial_network.txt: id, longitude, latitude, altitude. The id is a feature, as the
  paper's "d = 3" implies.

Prepared as in the paper: features z-scored over all rows, the response centred and divided by its
largest absolute value, the first 80 % of rows to train. That looks at the data, test rows included:
for the comparison, and for nobody's release.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError

Array = NDArray[np.float64]

FILES = {
    "PowerPlant": "power_plant_energy.csv",
    "BikeSharing": "bike_sharing.csv",
    "AirQuality": "air_quality.csv",
    "3droad": "3D_spatial_network.txt",
}
AIR_ROWS, AIR_COLUMNS = 9357, 13  # those of the file that are not empty


class DataError(TacitError):
    """A data set that is not there, or not as it should be."""


@dataclass(frozen=True)
class Split:
    """Train and test rows."""

    x: Array
    y: Array
    x_test: Array
    y_test: Array

    def error(self, theta: Array) -> float:
        """Mean squared error of predicting test responses."""
        return float(np.mean((self.y_test - self.x_test @ theta) ** 2))


def available(folder: Path) -> list[str]:
    """Names of the sets whose files are there."""
    return [name for name, file in FILES.items() if (folder / file).exists()]


def prepared(folder: Path, name: str) -> tuple[Array, Array]:
    """All rows of a set, z-scored and scaled as the paper does."""
    path = folder / FILES[name]
    if not path.exists():
        raise DataError(
            f"--data: {path.name} is not in {str(folder)!r}; fetch {name} from the UCI repository "
            "and save it under that name"
        )
    table = np.genfromtxt(path, delimiter=",")
    if name == "AirQuality":
        table = np.nan_to_num(table[:AIR_ROWS, :AIR_COLUMNS])
    if table.ndim != 2 or table.shape[1] < 2 or not np.isfinite(table).all():  # noqa: PLR2004
        raise DataError(
            f"--data: {path.name} must hold numbers alone, separated by commas, without a header"
        )
    x, y = table[:, :-1], table[:, -1]
    y = y - y.mean()
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1), y / np.abs(y).max()


def split(x: Array, y: Array) -> Split:
    """The first 80 % of rows, rounded up as the paper's counts are (7,655, 7,486), and the rest."""
    cut = math.ceil(0.8 * len(y))
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])
