"""Parts in processes of their own, so many at a time, on one GPU.

Chains of problems this small wait for the launching of kernels, one after the other; processes side
by side fill the gaps, and compile at the same time. Every d (or data set) is cut further, by J.
Where NVIDIA's MPS can be had, kernels of several processes run at once; without it they take turns.
What bounds the whole is the processor: every process imports jax and compiles its own kernels.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.run.parts import Part, PartError, joined, load

Line = dict[str, Any]
"""What a part took."""
MPS = "nvidia-cuda-mps-control"
ALONE = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""Every process takes the memory it needs and one core: sixteen that each start a thread per core
spend more time waiting for each other than computing."""
FLAGS = (
    "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,WHILE,CONDITIONAL"
    " --xla_gpu_graph_min_graph_size=1 --xla_gpu_autotune_level=0"
)
"""Of XLA on a GPU: a loop is one graph that runs without the processor, and no kernel is tried in
several forms, since none runs long enough to pay for it."""
UNKNOWN = "Unknown flag"
"""What XLA says before it ends, where its version does not have one of them."""
SIDE_BY_SIDE = 20
"""Pieces at a time on one GPU of a machine with sixteen cores."""


def pieces_at_a_time() -> int:
    """How many pieces run at once unless the caller says: one where there is no GPU to share."""
    return 1 if shutil.which(MPS) is None else SIDE_BY_SIDE


class Piece(NamedTuple):
    """A method's chains of one d (or data set) at one J."""

    method: str
    name: str  # of its d or data set
    holders: int

    def folder(self, out: Path) -> Path:
        """Where its part is written."""
        return out / "pieces" / f"j{self.holders}"


def run(pieces: list[Piece], options: argparse.Namespace) -> list[Line]:
    """Run every piece, the dearest first: those are the last ones listed."""
    with sharing() as environment, ThreadPoolExecutor(options.processes) as pool:
        lines = pool.map(lambda piece: run_one(piece, options, environment), reversed(pieces))
        return list(lines)[::-1]


def run_one(piece: Piece, options: argparse.Namespace, environment: dict[str, str]) -> Line:
    """One piece in a process of its own."""
    folder = piece.folder(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    times = folder / f"times-{piece.method}-{piece.name}.json"
    command = [sys.executable, "-m", "experiments", "compute", options.experiment]
    command += ["--out", str(folder), "--times", str(times), "--seed", str(options.seed)]
    command += ["--methods", piece.method, "--only", piece.name, "--holders", str(piece.holders)]
    command += ["--processes", "1"]  # a piece is not cut further
    command += ["--quick"] if options.quick else []
    command += [] if options.runs is None else ["--runs", str(options.runs)]
    command += [] if options.data is None else ["--data", str(options.data)]
    done = tried(command, environment)
    if done.returncode and UNKNOWN in done.stderr:  # of another jax: slower, and right
        done = tried(command, {k: v for k, v in environment.items() if k != "XLA_FLAGS"})
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr, flush=True)
        raise PartError(f"{piece.method} {piece.name} J={piece.holders} failed")
    told = json.loads(times.read_text(encoding="utf-8"))
    print(f"{piece.method} {piece.name} J={piece.holders}: {told['total']:.1f} s", flush=True)
    (line,) = told["lines"]
    name = f"{piece.name}, J={piece.holders}"
    return dict(line) | {"name": name, "device": told["device"]}


def tried(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The command's end, with what it printed."""
    return subprocess.run(  # noqa: S603 - this program
        command, env=environment, capture_output=True, text=True, check=False
    )


@contextmanager
def sharing() -> Iterator[dict[str, str]]:
    """The environment of processes that share a GPU, under MPS where that starts."""
    environment = os.environ | ALONE
    program = shutil.which(MPS)
    if program is None:
        yield environment
        return
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        environment["CUDA_MPS_PIPE_DIRECTORY"] = folder
        environment["CUDA_MPS_LOG_DIRECTORY"] = folder
        environment.setdefault("XLA_FLAGS", FLAGS)
        started = subprocess.run([program, "-d"], env=environment, check=False)  # noqa: S603 - as above
        if started.returncode:
            yield os.environ | ALONE
            return
        try:
            yield environment
        finally:
            subprocess.run(  # noqa: S603 - as above
                [program], input="quit\n", text=True, env=environment, check=False
            )


def whole(paths: list[Path]) -> Part:
    """One part of its pieces, in the order of J."""
    pieces = [load(path) for path in paths]
    draws = {
        name: array for piece in pieces for name, array in piece.items() if name.startswith("draws")
    }
    seconds = np.concatenate([piece["seconds"] for piece in pieces])
    return joined(pieces) | draws | {"seconds": seconds}
