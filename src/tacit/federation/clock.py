"""The server's door as a site sees it: whether it opens, its certificate, and what time it is.

Asked of the one page that the server shows to everybody (`/health`), with the certificate
authority that the site was given. Nothing of the site is told.
"""

import email.utils
import http.client
import ssl
import time
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import FederationError

CLOCK_LIMIT = 300.0
"""Seconds by which a site's clock may differ from the server's."""
TIMEOUT = 10.0
_DAY = 86_400.0


@dataclass(frozen=True)
class Door:
    """What was found: a sentence where the server cannot be used, else its clock and certificate.

    `ahead` is by how many seconds this machine's clock is ahead of the server's, which tells whole
    seconds only.
    """

    trouble: str | None = None
    ahead: float | None = None
    certificate_days: float | None = None

    @property
    def clock_trouble(self) -> str | None:
        """A sentence where the clocks differ by more than is tolerated."""
        if self.ahead is None or abs(self.ahead) <= CLOCK_LIMIT:
            return None
        side = "ahead of" if self.ahead > 0 else "behind"
        return (
            f"this machine's clock is {abs(self.ahead):.0f} seconds {side} the server's, and at "
            f"most {CLOCK_LIMIT:.0f} are tolerated: set the clock (`timedatectl set-ntp true`)"
        )


def look(address: str, certificate: str | Path) -> Door:
    """Look at the server at host:port."""
    host, _, port = address.rpartition(":")
    try:
        context = ssl.create_default_context(cafile=str(certificate))
    except (OSError, ssl.SSLError):
        return Door(f"the authority's certificate {str(certificate)!r} cannot be read")
    connection = http.client.HTTPSConnection(
        host.strip("[]"), int(port), context=context, timeout=TIMEOUT
    )
    try:
        connection.connect()
        ends = _ends(connection)
        connection.request("GET", "/health")
        date = connection.getresponse().getheader("Date")
    except ssl.SSLCertVerificationError as error:
        return Door(_distrust(address, error))
    except (OSError, http.client.HTTPException) as error:
        return Door(f"the server {address} cannot be reached ({type(error).__name__})")
    finally:
        connection.close()
    return Door(ahead=_ahead(date), certificate_days=ends)


def _distrust(address: str, error: ssl.SSLCertVerificationError) -> str:
    late = "its time has not come or is over: this machine's clock may be wrong, or the server "
    late += "must renew it (`tacit federate renew` there)"
    other = "another authority signed it, or it is for another name: ask the analyst for ca.crt"
    is_late = any(word in error.verify_message for word in ("expired", "not yet valid"))
    return f"the certificate of {address} is not accepted: {late if is_late else other}"


def _ends(connection: http.client.HTTPSConnection) -> float | None:
    certificate: dict[str, str] = getattr(connection.sock, "getpeercert", dict)()
    ends = certificate.get("notAfter")
    return None if ends is None else (ssl.cert_time_to_seconds(ends) - time.time()) / _DAY


def _ahead(date: str | None) -> float | None:
    """How far this clock is ahead of a `Date` header."""
    if date is None:
        return None
    return time.time() - email.utils.parsedate_to_datetime(date).timestamp()


def days_left(certificate: str | Path) -> float:
    """Days until the first certificate in a file ends."""
    from cryptography import x509

    try:
        loaded = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
    except (OSError, ValueError):
        raise FederationError(f"cannot read the certificate {str(certificate)!r}") from None
    return (loaded.not_valid_after_utc.timestamp() - time.time()) / _DAY
