"""The programs that a federation's services run: `tacit federate serve`, `node` and `link`."""

from pathlib import Path
from typing import Annotated

import typer

PolicyFile = Annotated[Path, typer.Argument(help="The site's policy, holder.toml.")]


def serve(
    policy: PolicyFile,
    secret: Annotated[Path, typer.Option(help="File with the secret shared with the SuperNode.")],
    supernode: Annotated[
        str, typer.Option(help="Where this site's SuperNode hands out tasks; on this machine.")
    ] = "127.0.0.1:9094",
    poll: Annotated[float, typer.Option(help="Seconds between looks for a task.")] = 0.3,
) -> None:
    """Answer studies that reach this site's SuperNode, by the policy, until stopped.

    The SuperNode runs with --isolation process and executes nothing itself. No code that came over
    the network is run.

    Example: `tacit federate serve /etc/tacit/holder.toml --secret /etc/tacit/secret`
    """
    from tacit.federation.client.lean import stay_small

    stay_small()
    from tacit.federation.client.app import app as client
    from tacit.federation.client.policy import Policy
    from tacit.federation.client.serve import Runtime
    from tacit.federation.client.serve import serve as serve_site
    from tacit.federation.logs import log_to_stderr

    allowed = Policy.load(policy)
    runtime = Runtime.at(supernode, secret)
    log_to_stderr("site")
    typer.echo(
        f"{allowed.holder!r} answers what reaches the SuperNode at {supernode}; interrupt to stop"
    )
    serve_site(client, runtime, policy, poll=poll)


def node(
    address: Annotated[str, typer.Option(help="Where the server is reached, as host:port.")],
    folder: Annotated[Path, typer.Option(help="Folder with ca.crt, node.key and secret.")] = Path(
        "/etc/tacit"
    ),
    port: Annotated[int, typer.Option(help="Port on this machine for the site's executor.")] = 9094,
) -> None:
    """Keep this site's SuperNode alive, and say why where it cannot be, until stopped.

    It is started anew when it ends, and when the executor that it waits for has died.

    Example: `tacit federate node --address tacit.example.org:8443`
    """
    from tacit.federation.client.node import Link, supervise
    from tacit.federation.logs import log_to_stderr

    log_to_stderr("node")
    supervise(
        Link(
            address=address,
            certificate=folder / "ca.crt",
            key=folder / "node.key",
            secret=folder / "secret",
            port=port,
        )
    )


def link(
    folder: Annotated[
        Path, typer.Option(help="Folder with ca.crt, superlink.crt and superlink.key.")
    ] = Path("/etc/tacit"),
    state: Annotated[Path, typer.Option(help="Folder for the database of sites and runs.")] = Path(
        "/var/lib/tacit"
    ),
    port: Annotated[int, typer.Option(help="Port on this machine alone.")] = 8000,
) -> None:
    """Run the SuperLink on this machine's loopback, for nginx to stand before, until stopped.

    Sites' clocks may differ from this machine's by five minutes; one that is further off is named.

    Example: `tacit federate link --folder /etc/tacit --state /var/lib/tacit`
    """
    from tacit.federation.flower import start_superlink
    from tacit.federation.logs import log_to_stderr
    from tacit.federation.server.link import note_clock, superlink_options

    log_to_stderr("server")
    options = superlink_options(folder, state, port)
    start_superlink(options, lambda key, seconds: note_clock(state, key, seconds))
