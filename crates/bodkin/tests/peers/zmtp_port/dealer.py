"""A publisher and a subscriber that use DEALER and the frames of docs/formats, as anybody would write them.

`dealer.py ADDRESS SYSTEM [KEYS]`: publishes three events as SYSTEM, hears and acknowledges them, and prints a line of JSON. KEYS is a JSON object, for CURVE: the
server's public key, and of `publisher` and `subscriber` the public and the secret one, in Z85.
"""

import json
import struct
import sys
import time

import zmq

PATIENCE_MS = 20_000
TOPIC = b"hot"
# version, flags, publisher, incarnation, sequence, created (UTC, ns), epoch
HEADER = struct.Struct(">BBQQQQQ")
HELLO, LEADER, COVERED, SUBSCRIBE, SUBSCRIBED, DELIVERED = 64, 65, 66, 68, 69, 71


def text(of):
    return struct.pack(">H", len(of)) + of


def command(kind, fields):
    return struct.pack(">BBQ", 1, kind, 0) + fields


def hear(socket, kind):
    """The fields of the next command, which is of this kind."""
    [frame] = socket.recv_multipart()
    version, came, epoch = struct.unpack(">BBQ", frame[:10])
    assert (version, came, epoch) == (1, kind, 0), frame
    return frame[10:]


def socket_of(context, kind, keys=None, of=None):
    """A socket, which shows this key if there are any."""
    made = context.socket(kind)
    made.linger = 2000
    made.rcvtimeo = made.sndtimeo = PATIENCE_MS
    if keys:
        made.curve_serverkey = keys["server"].encode()
        made.curve_publickey, made.curve_secretkey = (key.encode() for key in keys[of])
    return made


def dealer(context, address, name, incarnation, keys=None, of=None):
    """A DEALER that has said hello to the leader."""
    made = socket_of(context, zmq.DEALER, keys, of)
    made.identity = name.encode()
    made.connect(address)
    made.send(command(HELLO, struct.pack(">Q", incarnation) + text(name.encode())))
    assert hear(made, LEADER) == b"\x01"
    return made


def main():
    address, system, *more = sys.argv[1:]
    keys = json.loads(more[0]) if more else None
    context = zmq.Context()
    incarnation = time.time_ns()
    heard, covered = [], 0
    subscriber = dealer(context, address, "display", incarnation, keys, "subscriber")
    # No tolerance and deadline of its own, required, waited for a minute, no watermarks.
    wait_ns = 60 * 10**9
    subscriber.send(command(SUBSCRIBE, b"\0\0\1" + struct.pack(">Q", wait_ns) + text(TOPIC) + b"\0\0"))
    hear(subscriber, SUBSCRIBED)
    publisher = dealer(context, address, system, incarnation, keys, "publisher")
    for sequence, payload in enumerate([b"one", b"two", b"three"], 1):
        publisher.send_multipart([TOPIC, payload, HEADER.pack(1, 0, 0, incarnation, sequence, time.time_ns(), 0)])
    for _ in range(3):
        topic, payload, header = subscriber.recv_multipart()
        _, _, source, run, sequence, _, _ = HEADER.unpack(header)
        heard.append([topic.decode(), payload.decode(), sequence])
    before = publisher.poll(300)
    subscriber.send(command(DELIVERED, struct.pack(">QQQ", source, run, sequence) + text(TOPIC)))
    while covered < 3:
        run, covered = struct.unpack(">QQ", hear(publisher, COVERED)[:16])
        assert run == incarnation
    print(json.dumps({"heard": heard, "covered before": before, "covered": covered}), flush=True)
    context.destroy(linger=1000)


if __name__ == "__main__":
    main()
