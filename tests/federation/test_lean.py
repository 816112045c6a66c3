"""tacit.federation.client.lean: a site's executor does without pandas, which Spark still finds.

Covers `tacit.federation.client.lean`.
"""

import importlib.util
import subprocess
import sys

import pytest

SITE = """
import sys
from tacit.federation.client.lean import stay_small, want_pandas
{before}
import pyarrow as pa
numbers = pa.array([1.5, None], pa.float64())
assert repr(numbers.to_numpy(zero_copy_only=False)) == "array([1.5, nan])"
print("pandas" in sys.modules)
want_pandas()
import pandas
"""


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
@pytest.mark.parametrize(("before", "loaded"), [("stay_small()", "False"), ("", "True")])
def test_pyarrow_loads_no_pandas_at_a_site(before, loaded):
    command = [sys.executable, "-c", SITE.format(before=before)]
    seen = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (seen.returncode, seen.stdout.strip()) == (0, loaded), seen.stderr


READING = """
import sys
from tacit.federation.client.lean import stay_small
stay_small()
from tacit.rows.table import table_of
from tacit.study import Study
study = Study.from_document({
    "name": "s", "epsilon": 1.0, "delta": 1e-6,
    "response": {"name": "days", "range": [0, 5]},
    "features": [{"name": "age", "range": [0, 100]}],
})
print(sum(batch.num_rows for batch in table_of(sys.argv[1], study).batches()))
"""


@pytest.mark.parametrize("ending", ["sav", "dta", "xlsx"])
def test_files_of_other_programs_are_read_without_it(tmp_path, ending):
    pandas = pytest.importorskip("pandas")
    pyreadstat = pytest.importorskip("pyreadstat")
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / f"stays.{ending}"
    frame = pandas.DataFrame({"age": [30.0, 40.0, 50.0], "days": [1.0, 2.0, 3.0]})
    if ending == "xlsx":
        book = openpyxl.Workbook()
        for row in [list(frame.columns), *frame.to_numpy().tolist()]:
            book.active.append(row)
        book.save(path)
    else:
        getattr(pyreadstat, f"write_{ending}")(frame, str(path))
    command = [sys.executable, "-c", READING, str(path)]
    seen = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (seen.returncode, seen.stdout.strip()) == (0, "3"), seen.stderr
