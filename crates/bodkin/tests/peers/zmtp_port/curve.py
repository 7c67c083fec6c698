"""CURVE on the ZMTP port: a key that is bound to no system is refused, and let in once it is; PUB and SUB in boxes.

`curve.py ADDRESS KEYS`: KEYS is a JSON object, the server's public key, and of `stranger` and `display` the public and the secret one, in Z85. Prints what became of the
stranger, waits for a line that says that its key is bound, and prints what was heard of it then.
"""

import json
import sys
import time

import zmq
from dealer import PATIENCE_MS, dealer, socket_of
from zmq.utils.monitor import recv_monitor_message

ENDS = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: "let in",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "refused",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "refused",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "refused",
    zmq.EVENT_DISCONNECTED: "refused",
}


def handshake(socket, address):
    """How the handshake with this address ends."""
    monitor = socket.get_monitor_socket()
    socket.connect(address)
    while monitor.poll(PATIENCE_MS):
        event = recv_monitor_message(monitor)["event"]
        if event in ENDS:
            return ENDS[event]
    return "not ended"


def main():
    address, keys = sys.argv[1], json.loads(sys.argv[2])
    context = zmq.Context()
    stranger = socket_of(context, zmq.DEALER, keys, "stranger")
    print(json.dumps({"stranger": handshake(stranger, address)}), flush=True)
    sys.stdin.readline()
    # At once: libzmq does not try again when it was refused.
    dealer(context, address, "whoever", time.time_ns(), keys, "stranger")
    subscriber = socket_of(context, zmq.SUB, keys, "display")
    subscriber.subscribe(b"note")
    subscriber.connect(address)
    publisher = socket_of(context, zmq.PUB, keys, "stranger")
    publisher.connect(address)
    end = time.monotonic() + PATIENCE_MS / 1000
    while not subscriber.poll(50) and time.monotonic() < end:
        publisher.send_multipart([b"note", b"in a box"])
    event_type, payload, header = subscriber.recv_multipart()
    print(json.dumps({"heard": [event_type.decode(), payload.decode(), len(header)]}), flush=True)
    context.destroy(linger=1000)


main()
