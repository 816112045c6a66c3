"""Sites that misbehave, as programs of their own: `rogue.py KIND POLICY SUPERNODE SECRET`."""

import os
import signal
import sys

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from tacit.federation.client import app as real
from tacit.federation.client.serve import Runtime, serve
from tacit.federation.wire import Answer, record_of
from tacit.holder.ledger import Ledger

MALFORMED = RecordDict({"answer": ConfigRecord({"state": "released", "surprise": [1, 2, 3]})})


def saying(content: RecordDict) -> ClientApp:
    rogue = ClientApp()

    @rogue.query()
    def say(message: Message, context: Context) -> Message:
        del context
        return Message(content, reply_to=message)

    return rogue


def dying() -> ClientApp:
    """The real app in a process that is killed between paying and storing the release."""

    def die(*_arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    Ledger.record = die  # type: ignore[method-assign]
    return real.app


APPS = {
    "malformed": lambda: saying(MALFORMED),
    "oversized": lambda: saying(record_of(Answer("released", release="1" * (33 * 2**20)))),
    "dying": dying,
}

if __name__ == "__main__":
    kind, policy, supernode, secret = sys.argv[1:]
    serve(APPS[kind](), Runtime.at(supernode, secret), policy, poll=0.2)
