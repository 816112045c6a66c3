"""Data frames of pandas, which is loaded when somebody asks for one."""

from typing import TYPE_CHECKING

from tacit.errors import PosteriorError

if TYPE_CHECKING:
    import pandas as pd


def frame_class(what: str) -> "type[pd.DataFrame]":
    """The class of data frames, or a sentence that says how to get it."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError:
        raise PosteriorError(
            f"{what} needs pandas, which is not installed: pip install pandas"
        ) from None
    return DataFrame
