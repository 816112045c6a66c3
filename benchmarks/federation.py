"""A federation of many sites: time from the request to the posterior, and what travels.

Every site has a table, a policy, a ledger and a signing key of its own, and answers through the
ClientApp; the ServerApp's own code asks, checks and fits. In one process by default; with
--simulation in Flower's simulation engine, which needs Ray (pip install 'tacit-dp[simulation]');
with --processes as five real sites, a SuperLink and `tacit federate run`, over TLS on loopback.

Bars (--check): every site publishes and is charged once, a second run pays nothing and gets the
same, and in one process no site needs over 2 seconds. With --processes: from `tacit federate run`
to the posterior under 20 seconds in both of two runs, and a site under 250 MB; bytes a site and
round are printed, and how busy the machine was.

    python benchmarks/federation.py [--sites 100] [--quick] [--check] [--simulation | --processes]
"""

import argparse
import importlib.util
import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

from flwr.serverapp import Grid
from frame import Bench

from tacit.demo.hospitals import STUDY, patients
from tacit.federation.client.app import app as client
from tacit.federation.local import LocalGrid, Node
from tacit.federation.server.app import Order, federate
from tacit.federation.server.ask import Patience
from tacit.federation.server.gather import Inquiry
from tacit.holder.ledger import Ledger
from tacit.study import Study


def make_sites(folder: Path, sites: int, rows: int) -> list[Path]:
    """Write each site's rows, key and policy; returns the policies."""
    import numpy as np
    import pyarrow.parquet as pq

    from tacit.release.signature import new_key

    rng = np.random.default_rng(1)
    policies = []
    for k in range(sites):
        place = folder / f"site-{k:03d}"
        place.mkdir()
        pq.write_table(patients(rng, rows), place / "rows.parquet")
        new_key(place / "sign.key")
        lines = [
            f'holder = "site-{k:03d}"',
            'data = ["rows.parquet"]',
            'dataset = "patients"',
            'ledger = "ledger.db"',
            'key = "sign.key"',
        ]
        most = [
            "[most]",
            "epsilon = 1.0",
            "delta = 1e-6",
            "epsilon_in_all = 1.0",
            "delta_in_all = 1e-6",
        ]
        policies.append(place / "holder.toml")
        policies[-1].write_text(
            "\n".join([*lines, "approval = false", 'studies = ["*"]', *most]), encoding="utf-8"
        )
    return policies


def agreement() -> Study:
    """The hospitals' study; unknown levels count as the last, so that no site has to wait."""
    document = Study.from_toml(STUDY).document()
    for feature in document["features"]:
        if feature.get("levels"):
            feature["other"] = feature["levels"][-1]
    return Study.from_document(document)


def charges(policies: list[Path]) -> int:
    return sum(
        len(account.charges)
        for policy in policies
        for account in Ledger(policy.with_name("ledger.db")).accounts()
    )


def run(grid: Grid, sites: int, out: Path) -> float:
    """Seconds of one run."""
    terms = Inquiry(agreement(), Patience(3600.0, 600.0, 0.0), least=sites)
    begun = time.perf_counter()
    federate(grid, Order(terms, out, "noise-aware", "weak"))
    return time.perf_counter() - begun


def simulate(policies: list[Path], out: Path) -> float:
    """The same in Flower's simulation engine: one ClientApp per site, in Ray's actors."""
    from flwr.app import Context, Message
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.simulation import run_simulation

    server = ServerApp()
    taken: list[float] = []
    wrapped = ClientApp()
    names = [str(policy) for policy in policies]

    @wrapped.query()
    def answer(message: Message, context: Context) -> Message:
        context.node_config["policy"] = names[int(context.node_config["partition-id"])]
        return client(message, context)

    @server.main()
    def main(grid: Grid, context: object) -> None:
        del context
        taken.append(run(grid, len(names), out))

    run_simulation(
        server,
        wrapped,
        len(names),
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    return taken[0]


def main() -> None:
    bench = Bench(__doc__, quick="ten sites")
    bench.option("--sites", type=int, default=100)
    bench.option("--rows", type=int, default=2000, help="rows of each site")
    bench.option("--simulation", action="store_true", help="in Flower's simulation engine")
    bench.option("--processes", action="store_true", help="five real sites")
    options = bench.options()
    logging.getLogger("flwr").setLevel(logging.WARNING)
    if options.simulation and importlib.util.find_spec("ray") is None:
        print("Flower's simulation engine needs Ray: pip install 'tacit-dp[simulation]'")
        sys.exit(2)
    sites = 10 if options.quick else options.sites
    with tempfile.TemporaryDirectory() as name:
        if options.processes:
            measure_processes(bench, Path(name), options.rows)
        else:
            measure(bench, Path(name), sites, options)
    bench.finish()


def measure(bench: Bench, folder: Path, sites: int, options: argparse.Namespace) -> None:
    """Two runs over the same sites, and the bars."""
    policies = make_sites(folder, sites, options.rows)
    nodes = {k: Node(client, {"policy": str(policy)}) for k, policy in enumerate(policies)}
    grid = LocalGrid(nodes)
    if options.simulation:
        first = simulate(policies, folder / "first")
    else:
        first = run(grid, sites, folder / "first")
    paid = charges(policies)
    second = run(grid, sites, folder / "second")
    texts = [
        sorted(path.read_text() for path in (folder / part / "releases").iterdir())
        for part in ("first", "second")
    ]
    nodes_told = json.loads((folder / "first/federation.json").read_text())["nodes"]
    released = [node["state"] for node in nodes_told].count("released")
    engine = "simulation engine" if options.simulation else "one process"
    columns = {"run": "<10", "sites": "d", "seconds": ".2f", "ms a site": ".1f", "charges": "d"}
    table = bench.table("runs", columns)
    table.row("first", sites, first, first / sites * 1e3, paid)
    table.row("second", sites, second, second / sites * 1e3, charges(policies) - paid)
    bench.say(f"{options.rows} rows a site, {engine}")
    bench.say(f"a release is {sum(map(len, texts[0])) / len(texts[0]) / 1e3:.1f} kB")
    bench.bar("every site publishes and is charged once", met=paid == sites == released)
    bench.bar("a second run pays nothing", met=charges(policies) == paid)
    bench.bar("a second run gets the same releases", met=texts[0] == texts[1])
    if not options.simulation:
        bench.bar("no site needs over 2 seconds", met=first < 2 * sites)


def measure_processes(bench: Bench, folder: Path, rows: int) -> None:
    """Five real sites: time to the posterior, memory of a site, and what travels."""
    from federation_sites import network

    from tacit.federation.server.control import Control
    from tacit.federation.server.run import Follow

    sites = 5
    policies = make_sites(folder, sites, rows)
    columns = {"run": "<10", "seconds": ".1f", "MB a site": ".0f", "bytes a site": ".0f"}
    table = bench.table("real processes", columns)
    times = []
    memories = []
    with network(folder, agreement(), policies) as made:
        for name in ("first", "second"):
            begun = time.perf_counter()
            end = Follow(Control(), made.app).run()
            times.append(time.perf_counter() - begun)
            traffic = Control().runs()[0]["network-traffic"]["total-bytes"]
            memories.append(max(made.memory(policy.parent.name) for policy in policies))
            table.row(name, times[-1], memories[-1], traffic / sites)
            if end["outcome"] != "fitted":
                bench.say(str(end["failure"]))
        paid = charges(policies)
    bench.say(f"{sites} sites of {rows} rows; one round each; memory is the proportional set size")
    bench.say(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    bench.bar("every site is charged once", met=paid == sites)
    bench.bar("from run to posterior under 20 s", met=max(times) < 20)
    bench.bar("a site needs under 250 MB", met=max(memories) < 250)


if __name__ == "__main__":
    main()
