"""Folders are the trust boundary: what may import what, and what each side costs to load.

Covers `tacit`.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.simulation import simulate

SOURCE = Path(tacit.__file__).parent
REPOSITORY = Path(__file__).parents[1]
FILES = sorted(SOURCE.rglob("*.py"))

ENTRY_POINTS = {
    *("__init__", "__main__", "classifier", "cli", "demo", "desk", "estimator", "federation"),
    *("foreseen", "imagined", "plan", "private_estimator", "simulation"),
}
"""The only places that may see both sides."""
DOCUMENTS = {
    *("errors", "records", "html", "limits", "files", "cores", "privacy", "study", "release")
}
"""What both sides share."""
MAY_IMPORT = {
    "errors": set(),
    "records": set(),
    "html": set(),
    "page": {"page"},
    "limits": set(),
    "files": {"errors"},
    "scikit": {"errors"},
    "cores": set(),
    "privacy": {"privacy", "errors", "records"},
    "budget": {"errors", "privacy"},
    "rungs": {"privacy", "study"},
    "study": {"study", "errors", "records", "html", "limits", "files", "privacy"},
    "release": DOCUMENTS,
    "rows": {"rows", "errors", "study"},
    "visits": DOCUMENTS | {"visits"},
    "holder": DOCUMENTS | {"rows", "holder", "page", "visits"},
    "analyst": DOCUMENTS | {"rows", "analyst", "page", "visits"},
}
OUTSIDE = {
    *("os", "io", "sys", "pathlib", "sqlite3", "socket", "ssl", "http", "urllib", "subprocess"),
    *("shutil", "tempfile", "glob", "json", "pickle", "csv", "logging", "mmap"),
    *("requests", "httpx", "pyarrow", "pandas", "polars", "typer", "rich"),
}


def place(path):
    """The part of the package that a file belongs to: its folder, or its own name at the top."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree, package):
    """Every module that a file imports anywhere, late or by a name in a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(
                    [
                        *package.split(".")[: len(package.split(".")) - node.level + 1],
                        *([base] if base else []),
                    ]
                )
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("tacit.")
        ):
            yield node.value


def imports_of(path):
    package = ".".join(("tacit", *path.relative_to(SOURCE).parent.parts))
    return set(imports(ast.parse(path.read_text(encoding="utf-8")), package))


def parts_of(names):
    """Which parts of the package these modules belong to; a name of `tacit` belongs to its home."""
    own = [name for name in names if name.startswith("tacit.")]
    homes = [tacit._HOMES.get(name.removeprefix("tacit."), name) for name in own]
    return {home.split(".")[1] for home in homes}


def relative(path):
    return str(path.relative_to(SOURCE))


def test_the_reader_of_imports_sees_them_all():
    text = """
import tacit.holder.ledger as book
from tacit import publish
from tacit.rows import table
from . import prior
from .prior import Prior
from ..holder.encode import Encoder
def late():
    from tacit.holder.publish import publish
    import importlib
    importlib.import_module("tacit.holder.statistics")
if TYPE_CHECKING:
    from tacit.study import Study
"""
    found = set(imports(ast.parse(text), "tacit.analyst"))
    assert found >= {
        *(
            "tacit.holder.ledger",
            "tacit.publish",
            "tacit.rows.table",
            "tacit.analyst.prior",
            "tacit.analyst.prior.Prior",
        ),
        *(
            "tacit.holder.encode.Encoder",
            "tacit.holder.publish.publish",
            "tacit.holder.statistics",
            "tacit.study.Study",
        ),
    }
    assert parts_of({"tacit.publish"}) == {"holder"}
    assert parts_of(found) == {"holder", "analyst", "rows", "study"}


def test_every_file_has_its_place():
    assert {place(path) for path in FILES} <= set(MAY_IMPORT) | ENTRY_POINTS
    assert len(FILES) > 20


@pytest.mark.parametrize(
    "path", [path for path in FILES if place(path) not in ENTRY_POINTS], ids=relative
)
def test_each_part_imports_only_what_it_may(path):
    assert parts_of(imports_of(path)) <= MAY_IMPORT[place(path)]


def test_holder_and_analyst_never_import_each_other():
    for path in FILES:
        parts = parts_of(imports_of(path))
        assert not (place(path) == "holder" and "analyst" in parts), path
        assert not (place(path) == "analyst" and "holder" in parts), path
        assert {"holder", "analyst"} - parts or place(path) in ENTRY_POINTS, path


def test_the_desk_is_a_face_of_the_holders_side():
    files = [path for path in FILES if place(path) == "desk"]
    for path in files:
        names = imports_of(path)
        assert "analyst" not in parts_of(names), path
        assert not any(name.startswith("tacit.federation.server") for name in names), path
    assert len(files) > 10


HALVES = {"client": "analyst", "server": "holder"}
"""The side that each half of a federation must not see."""


def half_of(path):
    """Which half a file of the federation belongs to: by folder, in a secure sum by its name."""
    folder, *rest = path.relative_to(SOURCE / "federation").parts
    if folder == "secure_sum":
        return {"holder.py": "client", "server.py": "server"}.get(rest[0])
    return folder if folder in HALVES else None


def test_each_half_of_a_federation_sees_its_own_side_alone():
    files = [path for path in FILES if place(path) == "federation"]
    for path in files:
        names = imports_of(path)
        half = half_of(path)
        forbidden = {HALVES[half]} if half else {"holder", "analyst"}
        assert not parts_of(names) & forbidden, path
        others = tuple(f"tacit.federation.{other}" for other in HALVES if other != half)
        assert not any(name.startswith(others) for name in names), path
    assert {half_of(path) for path in files} >= set(HALVES)


@pytest.mark.parametrize("path", [path for path in FILES if place(path) == "privacy"], ids=relative)
def test_the_privacy_calculus_reaches_nothing_outside(path):
    assert not {name.split(".")[0] for name in imports_of(path)} & OUTSIDE
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"open", "print", "input", "exec", "eval", "__import__"}


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_data_never_names_code(path):
    text = path.read_text(encoding="utf-8")
    names = {name.split(".")[0] for name in imports_of(path)}
    assert not names & {"pickle", "shelve", "marshal", "dill", "cloudpickle", "joblib", "yaml"}
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"exec", "eval", "__import__"}


FLAGGED = {"cli", "demo", "desk", "federation"}
"""Parts that speak to somebody at a command line."""


def strings(tree):
    """Every string of a file but docstrings, the pieces of an f-string joined."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documentation:
            yield node.value


def test_the_library_does_not_speak_of_options_of_the_command_line():
    """What it refuses is refused to a program too, which has no --again to give."""
    told = [
        f"{relative(path)}: {text!r}"
        for path in FILES
        if place(path) not in FLAGGED and "report" not in path.parts  # which tells how to redo it
        for text in strings(ast.parse(path.read_text(encoding="utf-8")))
        if re.search(r"(^|[\s`(])--[a-z]", text)
    ]
    assert not told, "\n".join(told)


# What is loaded when.

HEAVY = {
    "formulaic",
    "sklearn",
    "jax",
    "matplotlib",
    "pandas",
    "polars",
    "arviz",
    "arviz_base",
    "arviz_stats",
    "blackjax",
    "numpyro",
    "opendp",
    "cryptography",
    "pyspark",
    "duckdb",
    "python_calamine",
    "pyreadstat",
}


def loaded(code):
    """Top-level packages that are loaded after running some code in a new interpreter."""
    names = "{name.split('.')[0] for name in sys.modules}"
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted({names})))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_tacit_loads_next_to_nothing():
    assert not loaded("import tacit") & (
        HEAVY | {"numpy", "scipy", "pyarrow", "pydantic", "typer", "rich"}
    )


@pytest.mark.parametrize("module", ["tacit.holder.publish", "tacit.cli", "tacit.simulation"])
def test_the_holders_side_loads_no_heavy_package(module):
    assert not loaded(f"import {module}") & HEAVY


def test_the_command_line_starts_without_the_numerics():
    assert not loaded("import tacit.cli") & {"numpy", "scipy", "pyarrow", "pydantic"}


def test_reading_a_table_does_not_load_the_noise_library():
    code = """
from tacit.holder.statistics import statistics_of
from tacit.rows.table import table_of
from tacit.study import Study
study = Study.from_toml('name="s"\\nepsilon=1\\ndelta=1e-6\\n[response]\\nname="y"\\nrange=[0,1]')
statistics_of(study, table_of({"y": [0.5]}, study).batches())
"""
    assert not loaded(code) & {"opendp", "jax", "matplotlib", "polars", "cryptography"}


def test_the_default_fit_loads_no_heavy_package(tmp_path):
    study = tacit.Study.from_toml(
        'name="s"\nepsilon=1\ndelta=1e-6\n[response]\nname="y"\nrange=[0,1]'
    )
    simulate(study, np.ones((9, 1)), np.random.default_rng(0), holder="h").save(tmp_path / "h.json")
    folder = str(tmp_path)
    code = f"""
import tacit
collection = tacit.collect([{folder!r}], allow_simulated=True)
tacit.fit(collection).save({folder!r} + "/posterior.parquet")
"""
    assert not loaded(code) & HEAVY


def test_every_exported_name_is_there():
    assert sorted(tacit.__all__) == sorted([*tacit._HOMES, "__version__"])
    assert dir(tacit) == sorted(tacit.__all__)
    for name in tacit._HOMES:
        assert getattr(tacit, name).__module__.startswith("tacit.")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tacit.nothing


# What is installed.


def test_the_core_depends_on_the_light_list_and_nothing_else():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {
        requirement.split(">")[0].split("=")[0].strip() for requirement in project["dependencies"]
    }
    assert names == {"numpy", "scipy", "pyarrow", "opendp", "pydantic", "typer", "rich"}


def test_the_holders_side_uses_core_dependencies_only():
    core = {"numpy", "scipy", "pyarrow", "opendp", "pydantic", "pydantic_core", "typer", "rich"}
    core |= {"tacit"}
    core |= {"cryptography"}  # for signing, imported late
    core |= {"pyspark"}  # for Spark tables, imported late
    core |= {"python_calamine", "pyreadstat"}  # for files of other programs, imported late
    for path in FILES:
        if place(path) in DOCUMENTS | {"budget", "rows", "holder", "simulation", "demo"}:
            names = {name.split(".")[0] for name in imports_of(path)}
            assert names <= core | set(sys.stdlib_module_names), path
