"""A publisher and a subscriber of Bodkin's ZMTP port, as anybody would write them.

`port.py ADDRESS SYSTEM`: publishes by PUB, PUSH and REQ, as SYSTEM where it names itself, waits for one more event, and prints a line of JSON with
what it heard.
"""

import json
import struct
import sys
import time

import zmq

PATIENCE_MS = 20_000
# version, flags, publisher, incarnation, sequence, created (UTC, ns), epoch
HEADER = struct.Struct(">BBQQQQQ")


def socket(context, kind, address, identity=None):
    made = context.socket(kind)
    made.linger = 2000
    made.rcvtimeo = made.sndtimeo = PATIENCE_MS
    if identity:
        made.identity = identity.encode()
    made.connect(address)
    return made


def main():
    address, system = sys.argv[1:]
    context = zmq.Context()
    subscriber = socket(context, zmq.SUB, address)
    subscriber.subscribe(b"begin")
    subscriber.subscribe(b"temp")
    other = socket(context, zmq.SUB, address)
    other.subscribe(b"nothing begins so")
    asker = socket(context, zmq.REQ, address)

    # A subscriber hears from when its subscription has come: ask until it is heard.
    while not subscriber.poll(20):
        asker.send_multipart([b"begin", b"?"])
        asker.recv_multipart()
    while subscriber.poll(200):
        subscriber.recv_multipart()

    heard, sequences, replies = [], [], []

    def hear():
        event_type, payload, header = subscriber.recv_multipart()
        heard.append([event_type.decode(), payload.decode()])
        fields = HEADER.unpack(header)
        sequences.append(fields[4])
        return fields[5]

    def ask(asking, *frames):
        asking.send_multipart(frames)
        reply = [frame.decode() for frame in asking.recv_multipart()]
        if reply[0] == "200":
            replies.append(reply)
        return reply

    publisher = socket(context, zmq.PUB, address)
    # A PUB drops what nobody has asked it for yet.
    time.sleep(0.5)
    publisher.send_multipart([b"temperature", b"by PUB"])
    hear()
    pusher = socket(context, zmq.PUSH, address)
    pusher.send_multipart([b"temperature", b"by PUSH"])
    hear()
    ask(asker, b"temperature", b"by REQ")
    hear()
    named = socket(context, zmq.REQ, address, system)
    ask(named, b"temperature", b"by REQ, named")
    hear()
    created = time.time_ns() - 1_000_000
    ask(named, b"temperature", b"with a header", HEADER.pack(1, 0, 0, 1, 1, created, 0))
    was_kept = hear() == created
    refused = ask(named, b"temperature", b"")[1]
    # The one that the test publishes.
    hear()
    said = {
        "heard": heard,
        "sequences": sequences,
        "created": was_kept,
        "replies": replies,
        "refused": refused,
        "unheard": other.poll(100),
    }
    print(json.dumps(said), flush=True)
    context.destroy(linger=1000)


main()
