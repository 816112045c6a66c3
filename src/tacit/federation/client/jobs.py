"""Jobs: answers that take long are worked on in the background, and the server is told so.

A site that reads a large table would be silent for as long, as if it were gone. So after a few
seconds it says that it works, and says so again whenever it is asked; what it has found by then is
in the ledger, or in the session of a secure sum, and is given to whoever asks next. Studies are
answered one after the other.
"""

import hashlib
import logging
import threading
from collections.abc import Callable

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from tacit.federation.flower import unanswerable
from tacit.federation.wire import Answer, Reason, record_of

LOG = logging.getLogger("tacit.federation")
PATIENCE = 8.0
"""Seconds after which a site that has no answer yet says that it works."""


class Job:
    """One question under way: what answers it, and the content of the answer once it is there."""

    def __init__(self, answer: Callable[[], Message], turn: threading.Lock) -> None:
        self._answer = answer
        self._turn = turn
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.content: RecordDict | None = None
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._turn:
                reply = self._answer()
        except Exception as error:  # its text could quote data, and Flower would send it
            LOG.exception("unexpected %s", type(error).__name__)
        else:
            self.content = reply.content if reply.has_content() else None

    def is_over(self, seconds: float) -> bool:
        """Whether it has ended, after waiting for so long."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


class Jobs:
    """All questions under way at a site."""

    def __init__(self, app: ClientApp, patience: float = PATIENCE) -> None:
        self._app = app
        self._patience = patience
        self._turn = threading.Lock()
        self._guard = threading.Lock()
        self._under_way: dict[str, Job] = {}

    def reply(self, message: Message, context: Context) -> Message:
        """The answer to a message, or that it is worked on."""
        question = _digest(message.content)
        with self._guard:
            job = self._under_way.get(question)
            if job is None:
                job = Job(lambda: self._app(message, context), self._turn)
                self._under_way[question] = job
        if not job.is_over(self._patience):
            return Message(record_of(Answer("waiting", Reason.WORKING)), reply_to=message)
        with self._guard:
            if self._under_way.get(question) is job:
                del self._under_way[question]
        if job.content is None:
            return unanswerable(message)
        return Message(job.content, reply_to=message)


def _digest(content: RecordDict) -> str:
    """By what the same question is known again."""
    words = repr([(name, list(content[name].items())) for name in sorted(content)])
    return hashlib.sha256(words.encode(errors="replace")).hexdigest()
