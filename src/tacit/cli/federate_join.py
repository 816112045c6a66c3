"""Joining a federation and leaving it, at the server and at a site."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.federate_run import SuperLink
from tacit.cli.federate_services import PolicyFile
from tacit.errors import FederationError

if TYPE_CHECKING:
    from tacit.federation.services import Services

ProjectFolder = Annotated[Path, typer.Argument(help="The folder that `tacit federate init` wrote.")]
AppFolder = Annotated[Path, typer.Argument(help="The project's folder app/.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
User = Annotated[
    bool, typer.Option("--user", help="Without root: services of this user's own systemd.")
]


def open_(
    project: ProjectFolder,
    *,
    folder: Annotated[
        Path | None, typer.Option(help="For certificates. [default: /etc/tacit]")
    ] = None,
    user: User = False,
    yes: Yes = False,
) -> None:
    """Open a federation at the server: certificates, an invitation for each site, the SuperLink.

    Example: `tacit federate open stay`
    """
    from tacit.federation.server.opening import certify, front, holders_of, install

    place = folder or _folder(user=user)
    names = holders_of(project)
    _agree(
        [
            f"make certificates in {project / 'superlink'}, unless they are there",
            f"write an invitation for {', '.join(names)} into {project / 'sites'}",
            f"put the certificates into {place}, and write and start tacit-superlink",
            "put nginx before it, where this machine has nginx",
        ],
        yes=yes,
    )
    certify(project, anew=False)
    invite(project, names)
    _say_unsaid(install(project, place, _state(user=user), _services(user=user)))
    _say_unsaid(front(project, _services(user=user)))
    if folder is not None:
        typer.echo(f"for those who start runs: export FLWR_HOME={place / 'flwr'}")


def invite(
    project: ProjectFolder,
    holder: Annotated[list[str] | None, typer.Argument(help="Holders; all without any.")] = None,
) -> None:
    """Write one file for each site, which is all that it needs to join.

    Example: `tacit federate invite stay north`
    """
    from tacit.federation.server.opening import holders_of, invitation_of

    for name in holder or holders_of(project):
        invitation = invitation_of(project, name)
        path = project / "sites" / f"{name}.invitation"
        invitation.save(path)
        typer.echo(f"{path} (its fingerprint, to be read out: {invitation.fingerprint})")


def join(
    invitation: Annotated[Path, typer.Argument(help="The file that the analyst sent.")],
    *,
    data: Annotated[
        str | None,
        typer.Option(help="Where the rows lie. [default: /srv/tacit/*.parquet, or ~/tacit]"),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="For keys and policy. [default: /etc/tacit]")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="For the ledger. [default: /var/lib/tacit]")
    ] = None,
    port: Annotated[int, typer.Option(help="Port of loopback between the two services.")] = 9094,
    user: User = False,
    yes: Yes = False,
) -> None:
    """Join a federation: make keys, policy and services, and a reply for the analyst.

    Says first what it will do. What is there already is left as it is, so it may be run again.

    Example: `tacit federate join north.invitation`
    """
    from tacit.federation.client.joining import SERVICES, Joining, perform
    from tacit.federation.invitation import Invitation

    invited = Invitation.load(invitation)
    study = invited.agreement()
    home = Path.home()
    joining = Joining(
        invitation=invited,
        folder=(folder or _folder(user=user)).absolute(),
        state=(state or _state(user=user)).absolute(),
        data=data or (str(home / "tacit/*.parquet") if user else "/srv/tacit/*.parquet"),
        prefix=Path(sys.prefix),
        services=_services(user=user),
        port=port,
    )
    acts = joining.acts()
    typer.echo(
        f"{invited.holder!r} joins the federation at {invited.address} for the study "
        f"{study.name!r} (epsilon = {study.epsilon:g}, {study.hash}); the fingerprint of "
        f"the invitation, to be compared with the analyst's: {invited.fingerprint}"
    )
    _agree([act.words for act in acts if not act.is_done], yes=yes)
    perform(acts)
    reply = joining.reply()
    path = joining.folder / f"{invited.holder}.reply"
    reply.save(path)
    _say_unsaid(joining.services.start(SERVICES))
    typer.echo(
        f"read and edit {joining.folder / 'holder.toml'}, then: "
        f"tacit federate check {joining.folder / 'holder.toml'}\n"
        f"send {path} to the analyst, and read this out: {reply.fingerprint}"
    )


def admit(
    app: AppFolder,
    reply: Annotated[list[Path], typer.Argument(help="What sites sent back.")],
    *,
    superlink: SuperLink = "tacit",
    yes: Yes = False,
) -> None:
    """Admit sites by their replies, once each fingerprint was read out and compared.

    Example: `tacit federate admit stay/app north.reply`
    """
    from tacit.federation.invitation import Reply
    from tacit.federation.server.control import Control
    from tacit.federation.server.opening import admit as admit_site

    replies = [Reply.load(path) for path in reply]
    for one in replies:
        one.check()
    _agree([f"admit {one.holder!r}, if it reads out {one.fingerprint}" for one in replies], yes=yes)
    for one in replies:
        number = admit_site(app, one, Control(superlink))
        typer.echo(f"{one.holder!r} is admitted as node {number}")


def leave(policy: PolicyFile, *, user: User = False, yes: Yes = False) -> None:
    """Leave a federation: stop and remove the services, and destroy what lets this site connect.

    Ledger, policy and signing key stay, as they prove what was published.

    Example: `tacit federate leave /etc/tacit/holder.toml`
    """
    from tacit.federation.client.joining import leave as leave_federation
    from tacit.federation.client.place import Place

    place = Place.beside(policy)
    _agree(
        [
            "stop and remove tacit-supernode and tacit-site",
            f"destroy {place.folder / 'node.key'} and {place.secret}; the ledger stays",
        ],
        yes=yes,
    )
    _say_unsaid(leave_federation(place, _services(user=user or place.user)))
    typer.echo("tell the analyst, who runs `tacit federate dismiss`")


def dismiss(
    app: AppFolder, holder: str, *, superlink: SuperLink = "tacit", yes: Yes = False
) -> None:
    """Turn a site away from now on, and count no release of its any more.

    Example: `tacit federate dismiss stay/app north`
    """
    from tacit.federation.server.control import Control
    from tacit.federation.server.opening import dismiss as dismiss_site

    _agree([f"unregister the SuperNode of {holder!r} and forget its keys"], yes=yes)
    dismiss_site(app, holder, Control(superlink))
    typer.echo(f"{holder!r} is turned away")


def renew(
    place: Annotated[
        Path, typer.Argument(help="At a site its policy; at the server the project's folder.")
    ],
    *,
    sign: Annotated[bool, typer.Option("--sign", help="At a site: the signing key too.")] = False,
    folder: Annotated[Path | None, typer.Option(help="At the server: for certificates.")] = None,
    user: User = False,
    yes: Yes = False,
) -> None:
    """Renew keys at a site, or the certificate at the server.

    A site sends the new reply to the analyst, who admits it. At the server the authority stays, so
    no site has to do anything.

    Example: `tacit federate renew /etc/tacit/holder.toml`
    """
    if place.is_dir():
        _renew_certificate(place, folder or _folder(user=user), user=user, yes=yes)
        return
    from tacit.federation.client.joining import SERVICES
    from tacit.federation.client.joining import renew as renew_keys
    from tacit.federation.client.place import Place
    from tacit.federation.client.policy import Policy
    from tacit.federation.invitation import Reply

    site = Place.beside(place)
    policy = Policy.load(place)
    names = "node.key" + (" and sign.key" if sign else "")
    _agree([f"replace {names} in {site.folder}, and keep the old as *.old"], yes=yes)
    renew_keys(site, sign=sign)
    public = (site.folder / "node.key.pub").read_text(encoding="utf-8").strip()
    reply = Reply.of(policy.holder, public, Path(policy.key or site.folder / "sign.key"))
    path = site.folder / f"{policy.holder}.reply"
    reply.save(path)
    _say_unsaid(_services(user=user or site.user).start(SERVICES))
    typer.echo(f"send {path} to the analyst, and read this out: {reply.fingerprint}")


def _renew_certificate(project: Path, folder: Path, *, user: bool, yes: bool) -> None:
    from tacit.federation.server.opening import certify, front, install

    _agree([f"sign a new certificate, put it into {folder}, restart tacit-superlink"], yes=yes)
    certify(project, anew=True)
    _say_unsaid(install(project, folder, _state(user=user), _services(user=user)))
    _say_unsaid(front(project, _services(user=user)))


def _folder(*, user: bool) -> Path:
    return Path.home() / ".config/tacit" if user else Path("/etc/tacit")


def _state(*, user: bool) -> Path:
    return Path.home() / ".local/share/tacit" if user else Path("/var/lib/tacit")


def _services(*, user: bool) -> "Services":
    from tacit.federation.services import Services, is_root

    if not user and not is_root():
        raise FederationError("this changes the machine: run it as root, or with --user")
    return Services(user=user)


def _agree(plan: list[str], *, yes: bool) -> None:
    """Say what will be done, and ask."""
    typer.echo("\n".join(["will:", *(f"  - {words}" for words in plan or ["change nothing"])]))
    if not yes and not typer.confirm("Go on?"):
        raise FederationError("nothing was done")


def _say_unsaid(commands: str | None) -> None:
    if commands is not None:
        typer.echo(f"could not be done from here; as root, where systemd runs: {commands}")
