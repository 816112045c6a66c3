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
