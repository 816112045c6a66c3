"""Sites for the tests of tacit.federation: a study, tables that fit it, policies."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tacit.holder.ledger import Ledger
from tacit.release.signature import new_key
from tacit.study import Study

STUDY = Study.from_document(
    {
        "name": "length-of-stay",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "days", "range": [0, 30]},
        "features": [
            {"name": "age", "range": [18, 100]},
            {"name": "sex", "levels": ["female", "male"], "other": "male"},
        ],
    }
)
SLOPE = 0.1
SURE = 1 - 1e-9
"""How sure an interval is that must hold the truth: the noise here is real, and has no seed."""
"""Days per year of age, as the tables are made."""


def changed(**fields):
    """The study with some fields changed."""
    return Study.from_document(STUDY.model_dump(mode="json", exclude_none=True) | fields)


def table(rows=400, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 100, rows)
    sex = rng.choice(["female", "male"], rows)
    days = np.clip(5 + SLOPE * age + (sex == "male") + rng.normal(0, 2, rows), 0, 30)
    return pa.table({"age": age, "sex": sex, "days": days})


def make_site(folder: Path, holder="north", rows=400, seed=1, *, signed=False, **policy):
    """Write a site's table and policy; returns the policy's path."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table(rows, seed), folder / "rows.parquet")
    fields = {
        "holder": holder,
        "data": ["rows.parquet"],
        "dataset": "patients",
        "ledger": "ledger.db",
        "approval": False,
    }
    fields |= {"studies": ["length-of-*"]} | policy
    if signed:
        fields["key"] = "sign.key"
        new_key(folder / "sign.key")
    most = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "epsilon_in_all": 2.0,
        "delta_in_all": 1e-6,
    } | fields.pop("most", {})
    peers = fields.pop("peers", None)
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items() if value is not None]
    lines += ["[most]", *(f"{name} = {value!r}" for name, value in most.items())]
    if peers is not None:
        lines += ["[peers]", *(f"{name} = {json.dumps(key)}" for name, key in peers.items())]
    path = folder / "holder.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def charges(policy: Path):
    """What the site's ledger holds."""
    ledger = Ledger(policy.with_name("ledger.db"))
    return (
        [charge for account in ledger.accounts() for charge in account.charges]
        if ledger.path.exists()
        else []
    )
