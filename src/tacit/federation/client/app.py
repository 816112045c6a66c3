"""The ClientApp: answers a study by the site's policy, which the node's configuration names."""

import logging

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from tacit.errors import TacitError
from tacit.federation.client.answer import answer
from tacit.federation.client.policy import Policy
from tacit.federation.wire import (
    Answer,
    Reason,
    Step,
    Visit,
    read_request,
    read_step,
    read_visit,
    record_of,
)

LOG = logging.getLogger("tacit.federation")

app = ClientApp()


@app.query()
def release(message: Message, context: Context) -> Message:
    """Answer a request; nothing that goes wrong leaves the site in words of its own."""
    try:
        content = _answer(message, context)
    except Exception as error:  # Flower would send an exception's text, which may quote data
        LOG.exception("unexpected %s", type(error).__name__)
        content = Answer("refused", Reason.SITE)
    return Message(record_of(content), reply_to=message)


def _asked(message: Message) -> str | Step | Visit:
    """A study's text, a later visit of one, or a round of its secure sum."""
    if "step" in message.content:
        return read_step(message.content)
    if "visit" in message.content:
        return read_visit(message.content)
    return read_request(message.content)


def _answer(message: Message, context: Context) -> Answer:
    try:
        asked = _asked(message)
    except TacitError as error:
        LOG.warning("refused: %s", error)
        return Answer("refused", Reason.UNREADABLE)
    try:
        policy = Policy.load(str(context.node_config.get("policy", "")))
    except TacitError as error:
        LOG.error(  # noqa: TRY400 - a traceback may quote data
            "no answer: %s; start the SuperNode with --node-config "
            "'policy=\"/etc/tacit/holder.toml\"'",
            error,
        )
        return Answer("refused", Reason.SITE)
    return answer(asked, policy)
