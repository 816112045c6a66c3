"""A study as the text of a TOML file, every default written out: read back, it is the same."""

import json
import re
from typing import Any

from tacit.study import Study


def study_toml(study: Study) -> str:
    """The text of a study file; the same study gives the same bytes."""
    document = _without_none(study.document())
    blocks = [
        table_lines({name: value for name, value in document.items() if not _is_table(value)})
    ]
    for name, value in document.items():
        if isinstance(value, dict):
            blocks.append(f"[{name}]\n" + table_lines(value))
        elif _is_table(value):
            blocks += [f"[[{name}]]\n" + table_lines(item) for item in value]
    return "\n".join(blocks)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(item, dict) for item in value)
    )


def _without_none(value: Any) -> Any:  # noqa: ANN401
    """TOML has no null: what is not given is not written."""
    if isinstance(value, dict):
        return {
            name: _without_none(item)
            for name, item in value.items()
            if item is not None and item != []
        }
    return [_without_none(item) for item in value] if isinstance(value, list) else value


def table_lines(table: dict[str, Any]) -> str:
    """The fields of a table, a line each."""
    return "".join(f"{name} = {_value(value)}\n" for name, value in table.items())


def _value(value: object) -> str:
    """A string, number, truth value, or list or inline table of them.

    JSON's spelling is TOML's, but for the letter DEL.
    """
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        fields = ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items())
        return f"{{ {fields} }}"
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    """A name as a key of a table: as it is where TOML allows that."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _value(name)
