"""A federation in one process: ClientApps called directly, for tests, benchmarks and trying out."""

import itertools
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flwr.app import Context, Message, RecordDict, UserConfig
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid

from tacit.errors import FederationError
from tacit.federation.flower import Run, identify, with_number


@dataclass(frozen=True)
class Node:
    """A node: its app and its own configuration."""

    app: ClientApp
    config: UserConfig


class LocalGrid(Grid):
    """A grid whose nodes answer when their answers are pulled.

    `on_reply` may look at each answer, or lose it by returning None.
    """

    def __init__(
        self,
        nodes: dict[int, Node],
        on_reply: Callable[[int, Message], Message | None] | None = None,
    ) -> None:
        identify()
        self.nodes = nodes
        self._on_reply = on_reply
        self._sent: dict[str, Message] = {}
        self._numbers = itertools.count(1)
        self._turn = threading.Lock()
        self._contexts = {
            number: Context(1, number, node.config, RecordDict(), {})
            for number, node in nodes.items()
        }

    def get_node_ids(self) -> Iterable[int]:
        """The nodes' numbers."""
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Keep messages until their answers are pulled."""
        pushed = []
        for message in messages:
            number = f"message {next(self._numbers)}"
            self._sent[number] = with_number(message, number)
            pushed.append(number)
        return pushed

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Let the nodes answer, one after the other."""
        replies = []
        for number in message_ids:
            with self._turn:
                message = self._sent.pop(number, None)
                if message is not None and message.metadata.dst_node_id in self.nodes:
                    replies.append(self._answer(message))
        return [reply for reply in replies if reply is not None]

    def _answer(self, message: Message) -> Message | None:
        node = message.metadata.dst_node_id
        reply = self.nodes[node].app(message, self._contexts[node])
        return reply if self._on_reply is None else self._on_reply(node, reply)

    def send_and_receive(
        self,
        messages: Iterable[Message],
        *,
        timeout: float | None = None,  # noqa: ARG002
    ) -> Iterable[Message]:
        """Ask and hear at once."""
        return self.pull_messages(self.push_messages(messages))

    # What a grid of one process has no use for.

    @property
    def run(self) -> Run:
        """There is no run."""
        raise FederationError("a federation in one process has no run")

    def set_run(self, run: Run) -> None:
        """There is no run to set."""

    def create_message(self, *arguments: object, **options: object) -> Message:
        """Flower has given this up: messages are made by their constructor."""
        raise NotImplementedError
