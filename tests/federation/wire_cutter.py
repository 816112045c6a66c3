"""A wire between a site and the server that can be cut: bytes pass, or nothing does."""

import selectors
import socket
import threading


class Wire:
    """Passes what arrives at `port` on to a target, until it is cut."""

    def __init__(self, target):
        self._target = target
        self._is_whole = threading.Event()
        self._is_whole.set()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Break every connection, and let no other through."""
        self._is_whole.clear()
        for end in list(self._open):
            end.close()
        self._open.clear()

    def mend(self):
        self._is_whole.set()

    def _accept(self):
        while True:
            near, _ = self._listener.accept()
            if not self._is_whole.is_set():
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            threading.Thread(target=self._pass_on, args=(near, far), daemon=True).start()

    def _pass_on(self, near, far):
        with selectors.DefaultSelector() as selector:
            selector.register(near, selectors.EVENT_READ, far)
            selector.register(far, selectors.EVENT_READ, near)
            try:
                while self._is_whole.is_set():
                    for key, _ in selector.select(0.2):
                        content = key.fileobj.recv(65536)
                        if not content:
                            return
                        key.data.sendall(content)
            except (OSError, ValueError):
                return
            finally:
                near.close()
                far.close()
