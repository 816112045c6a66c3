"""Writes docs/schemas/*.json, the JSON schemas of what Tacit reads and writes, from the code.

python docs/schemas.py
"""

import json
from pathlib import Path

from pydantic import BaseModel

from tacit.analyst.posterior.facts import PosteriorFacts
from tacit.holder.dossier.registry import Entry
from tacit.release import Release
from tacit.release.places import PlacesRelease
from tacit.release.question import Question
from tacit.study import Study

FOLDER = Path(__file__).with_name("schemas")
SCHEMAS: dict[str, type[BaseModel]] = {
    "study": Study,
    "release": Release,
    "places": PlacesRelease,
    "question": Question,
    "posterior": PosteriorFacts,
    "deployment": Entry,
}


def texts() -> dict[Path, str]:
    """Every file with what it must hold."""
    return {
        FOLDER / f"{name}.json": json.dumps(record.model_json_schema(), indent=2) + "\n"
        for name, record in SCHEMAS.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
