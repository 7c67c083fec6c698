"""HTTP clients with a source address, for measurements of what one client costs another."""

import json
import os
import socket
import ssl
import time


def context(folder, name):
    """Returns the TLS context of a system's certificate in FOLDER, or None in insecure mode."""
    if folder is None:
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if name:
        made.load_cert_chain(os.path.join(folder, f"{name}.crt"), os.path.join(folder, f"{name}.key"))
    return made


def connect(source, port, tls=None, timeout=10):
    """Connects to a port of this machine from an address of the loopback network."""
    plain = socket.socket()
    plain.settimeout(timeout)
    plain.bind((source, 0))
    plain.connect(("127.0.0.1", port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return tls.wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain


class Kept:
    """A connection that is kept, and opened again after an error."""

    def __init__(self, source, port, tls=None):
        self.source, self.port, self.tls = source, port, tls
        self.socket = self.lines = None

    def request(self, method, path, body=None):
        """Sends a request and returns status and body of the answer."""
        if self.socket is None:
            self.socket = connect(self.source, self.port, self.tls)
            self.lines = self.socket.makefile("rb")
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Length: {len(data)}\r\n"
        if body is not None:
            head += "Content-Type: application/json\r\n"
        try:
            self.socket.sendall(head.encode() + b"\r\n" + data)
            return self.answer()
        except Exception:
            self.close()
            raise

    def answer(self):
        line = self.lines.readline()
        if not line:
            raise ConnectionError("closed without an answer")
        length, closes = 0, False
        while (header := self.lines.readline()) not in (b"\r\n", b""):
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            closes |= name.lower() == b"connection" and value.strip() == b"close"
        body = self.lines.read(length)
        if closes:
            self.close()
        return int(line.split()[1]), body

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = self.lines = None


def until(end):
    """Yields the numbers from 0 until the time END of time.monotonic()."""
    number = 0
    while time.monotonic() < end:
        yield number
        number += 1
