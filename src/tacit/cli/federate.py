"""`tacit federate`: run a study over sites that Flower connects."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.federate_join import admit, dismiss, invite, join, leave, open_, renew
from tacit.cli.federate_run import run
from tacit.cli.federate_services import PolicyFile, link, node, serve
from tacit.cli.federate_status import status
from tacit.cli.options import Json
from tacit.errors import FederationError, TacitError

if TYPE_CHECKING:
    from tacit.federation.client.described import Described
    from tacit.federation.client.policy import Policy
    from tacit.federation.client.requests import Request
    from tacit.study import Study

app = typer.Typer(help="Run a study over sites that Flower connects.", no_args_is_help=True)
app.command("open")(open_)
for command in (invite, join, admit, leave, dismiss, renew, run, status, serve, node, link):
    app.command()(command)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Folder to write; it must not exist yet.")],
    study: Annotated[Path, typer.Option(help="The study file all holders agreed on.")],
    holder: Annotated[
        list[str], typer.Option(help="A holder's name, which also names its folder. Repeat it.")
    ],
    address: Annotated[str, typer.Option(help="Where sites reach the SuperLink, as host:port.")],
    prefix: Annotated[
        str, typer.Option(help="The environment Tacit is installed in, on every machine.")
    ] = "/opt/tacit",
    out: Annotated[
        str, typer.Option(help="Folder for results, on the SuperLink's machine.")
    ] = "/var/lib/tacit/results",
) -> None:
    """Write a ready project: the Flower app, certificates, services and a policy for each site.

    Example: `tacit federate init stay --study study.toml --holder north --holder south
    --address tacit.example.org:8443`
    """
    from tacit.federation.project import Project, write_project
    from tacit.study import Study

    written = write_project(Project(Study.load(study), tuple(holder), address, prefix, out), folder)
    for path in written:
        typer.echo(str(path))
    typer.echo(f"{folder / 'README.md'} says what goes where")


@app.command()
def keys(
    out: Annotated[Path, typer.Option(help="Folder for the keys; they stay at the site.")],
) -> None:
    """Write a site's keys: for its SuperNode, to sign releases, and a secret for its two processes.

    Example: `tacit federate keys --out /etc/tacit`
    """
    from tacit.federation.keys import fingerprint, write_keys

    made = write_keys(out)
    typer.echo(f"{made.node}, {made.sign}, {made.secret}: keep them")
    typer.echo(f"{made.node_public}: give it to the analyst, who registers it")
    typer.echo(
        f"public key of releases: {made.sign_public} (give it to the analyst, for holders.toml)"
    )
    typer.echo(f"its fingerprint, to be read out: {fingerprint(made.sign_public)}")


@app.command()
def check(policy: PolicyFile, *, as_json: Json = False) -> None:
    """Say what a site's policy allows, and try everything it names: data, key and ledger.

    A database is opened and its query begun; no row is looked at.

    Example: `tacit federate check /etc/tacit/holder.toml`
    """
    from tacit.federation.client.policy import Policy

    allowed = Policy.load(policy)
    missing = _missing(allowed)
    if as_json:
        typer.echo(json.dumps(allowed.model_dump(mode="json") | {"missing": missing}))
    else:
        typer.echo(_policy_words(allowed))
    if missing:
        raise FederationError(f"{policy}: {'; '.join(missing)}")


def _missing(policy: "Policy") -> list[str]:
    """What the policy names and is not there, or cannot be used."""
    import os

    from tacit.federation.client.sources import source_trouble
    from tacit.holder.ledger import Ledger

    trouble = source_trouble(policy)
    missing = [] if trouble is None else [trouble]
    if policy.key is not None and not Path(policy.key).is_file():
        missing.append(f"key: there is no file {policy.key!r}; make one with `tacit federate keys`")
    folder = Path(policy.ledger).parent
    if not folder.is_dir():
        missing.append(f"ledger: there is no folder {str(folder)!r}")
    elif not os.access(folder, os.W_OK):
        missing.append(f"ledger: {str(folder)!r} cannot be written by this user")
    elif Path(policy.ledger).exists():
        Ledger(policy.ledger).accounts()
    return missing


def _policy_words(policy: "Policy") -> str:
    most = policy.most
    each = f"{most.epsilon:g} per study at delta = {most.delta:g}"
    in_all = f"{most.epsilon_in_all:g} in all at {most.delta_in_all:g}"
    few = f"nothing is published about fewer than {policy.least_rows}"
    facts = {
        "holder": f"{policy.holder!r}, data set {policy.dataset!r}: {', '.join(policy.data)}",
        "studies": ", ".join(policy.studies or ("any",)),
        "columns": ", ".join(policy.columns or ("any that a study names",)),
        "budget": f"{each}; {in_all}",
        "rows": few if policy.least_rows else "any number",
        "approval": _approval(policy),
        "peers": _peers(policy),
        "signed": _signed(policy),
        "ledger": f"{policy.ledger}; requests beside it, in {policy.requests}",
    }
    return "\n".join(f"{name:<9} {fact}" for name, fact in facts.items())


def _peers(policy: "Policy") -> str:
    from tacit.federation.keys import fingerprint

    if policy.peers is None:
        return "none pinned: a person checks the keys in each secure sum"
    return ", ".join(f"{name!r} {fingerprint(key)}" for name, key in policy.peers.items())


def _signed(policy: "Policy") -> str:
    from tacit.federation.keys import fingerprint
    from tacit.release.signature import load_key, public_key

    if policy.key is None:
        return "no: anybody could claim to be this holder"
    if not Path(policy.key).is_file():
        return f"with {policy.key}"
    return f"with {policy.key}, fingerprint {fingerprint(public_key(load_key(policy.key)))}"


@app.command()
def approve(
    policy: PolicyFile,
    study: Annotated[
        str | None, typer.Argument(help="A study by its name, or the first letters of its hash.")
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking.")] = False,
    refuse: Annotated[bool, typer.Option("--refuse", help="Refuse.")] = False,
    as_json: Json = False,
) -> None:
    """List the studies that wait for a person; show one in words, and approve or refuse it.

    Example: `tacit federate approve holder.toml length-of-stay`; without a study it lists them all
    """
    from tacit.federation.client.described import described as describe
    from tacit.federation.client.policy import Policy
    from tacit.federation.client.requests import Requests

    if yes and refuse:
        raise FederationError("--yes and --refuse exclude each other: give one of them")
    allowed = Policy.load(policy)
    requests = Requests(allowed.requests)
    if study is None:
        _list(requests.every(), as_json=as_json)
        for complaint in requests.broken():
            typer.echo(complaint, err=True)
        return
    request = requests.find(study)
    if not as_json:
        typer.echo(_request_words(describe(request, allowed)))
    if not (yes or refuse):
        _rehearse(request.agreement(), allowed)
        yes = typer.confirm("\nApprove it?")
        refuse = not yes and typer.confirm("Refuse it? (no: it goes on waiting)")
    if yes or refuse:
        request = requests.decide(request, "refused" if refuse else "approved")
    typer.echo(
        json.dumps(_request_facts(request))
        if as_json
        else f"study {request.agreement().name!r}: {request.decision}"
    )


def _rehearse(study: "Study", policy: "Policy") -> None:
    """Show what the site's own rows would make of it, on this screen alone."""
    from tacit.federation.client.rehearsed import rehearsed

    if study.secure_sum is not None:
        return
    try:
        words = str(rehearsed(study, policy))
    except TacitError as error:
        words = f"it cannot be rehearsed here: {error}"
    typer.echo(f"\n{words}", err=True)


def _approval(policy: "Policy") -> str:
    if policy.approval:
        return "a person approves each study"
    return "only of secure sums, and of studies that could be refused for what rows say"


def _list(requests: "list[Request]", *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([_request_facts(request) for request in requests]))
        return
    for request in requests:
        study = request.agreement()
        digits = request.study_hash.removeprefix("sha256:")[:12]
        typer.echo(
            f"{digits}  {request.decision:<9}  asked {request.asked}  {study.name!r}, "
            f"epsilon = {study.epsilon:g}"
        )
    if not requests:
        typer.echo("no study was asked for that needs a person")


def _request_facts(request: "Request") -> dict[str, Any]:
    return request.model_dump(mode="json", exclude={"format", "version", "study"}) | {
        "name": request.agreement().name
    }


def _request_words(described: "Described") -> str:
    """The study in words, what would leave the house, and what that would cost."""
    from tacit.cli.study import words

    judgement = list(described.tells)
    if described.peers:
        judgement.append(
            "the sum is private only if these are real, separate holders with these keys:"
        )
        judgement += [
            f"  {peer.fingerprint}  {peer.name!r} ({peer.note})" for peer in described.peers
        ]
    lines = [
        words(described.study),
        "",
        *([*judgement, ""] if judgement else []),
        f"what would leave: {described.leaves}",
        f"what it would cost: {described.cost}",
        described.state,
    ]
    return "\n".join(lines)
