"""A site that is killed at a step of its first answer: `dying.py STEP POLICY SUPERNODE SECRET`.

Steps: before the charge, at it (paid, nothing stored), after the record, and while it hands its
answer over: with the message announced and not sent, and after all of it.
"""

import os
import signal
import sys

from tacit.federation import flower
from tacit.federation.client.app import app
from tacit.federation.client.serve import Runtime, serve
from tacit.holder.ledger import Ledger


def die(*_arguments: object, **_options: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(function):
    def called(*arguments, **options):
        function(*arguments, **options)
        die()

    return called


def before_charge() -> None:
    Ledger.pay = die


def at_charge() -> None:
    Ledger.record = die


def after_record() -> None:
    Ledger.record = after(Ledger.record)


def half_sent() -> None:
    """The SuperNode has the answer's announcement and never its content: it would be deaf."""
    from flwr.supernode.runtime import run_clientapp

    run_clientapp.push_objects = die


def after_sending() -> None:
    flower.Task.hand_over = after(flower.Task.hand_over)


def on_acquiring() -> None:
    """The SuperNode has given the task away, and nobody takes its message."""
    flower.Task.take = die


STEPS = {
    step.__name__: step
    for step in (before_charge, at_charge, after_record, half_sent, after_sending, on_acquiring)
}

if __name__ == "__main__":
    name, policy, supernode, secret = sys.argv[1:]
    STEPS[name]()
    serve(app, Runtime.at(supernode, secret), policy, poll=0.2)
