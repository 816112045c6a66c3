"""Environment: what Flower's programs are told before they begin.

They tell nobody outside of themselves, neither of their use nor that they look for a newer version:
the first says who federates, the second hangs for seconds where there is no internet.
"""

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""For every program of Flower's."""
SUPERNODE = QUIET | {"MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1"}
"""For a site's SuperNode, which computes nothing and should be small."""
SUPERLINK = QUIET | {"FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2"}
"""For the server's, whose helper looks for a run to start so often, in seconds."""
