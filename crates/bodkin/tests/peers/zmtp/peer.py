"""One socket of libzmq after the other, each with an exchange of its own.

`peer.py SETTINGS`, SETTINGS a JSON object:
  bind       whether it binds; it prints the port of each socket then, else it connects to `port`
  port       where it connects to, or `ports`, one for each socket
  sockets    the exchanges, by the name of the socket type or another one of EXCHANGES
  security   {"mechanism": "NULL"}, {"mechanism": "PLAIN", "username", "password"} or
             {"mechanism": "CURVE", "public", "secret", "server"} (keys in Z85; `server` is whose it connects to)
For each of them it prints a line of JSON: what it received, or how the handshake failed.
"""

import json
import os
import sys
import traceback

import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import recv_monitor_message

PATIENCE_MS = 20_000
PASSWORDS = {"admin": "secret"}
HANDSHAKE = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: "succeeded",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "refused",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "not understood",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "cut off",
}


class Peer:
    """A socket that is watched."""

    def __init__(self, context, kind, security, bind):
        self.socket = context.socket(kind)
        self.socket.linger = 1000
        self.socket.rcvtimeo = self.socket.sndtimeo = PATIENCE_MS
        self.socket.reconnect_ivl = -1
        self.monitor = self.socket.get_monitor_socket()
        if security["mechanism"] == "PLAIN":
            if bind:
                self.socket.plain_server = True
            else:
                self.socket.plain_username = security["username"].encode()
                self.socket.plain_password = security["password"].encode()
        if security["mechanism"] == "CURVE":
            self.socket.curve_secretkey = security["secret"].encode()
            self.socket.curve_publickey = security["public"].encode()
            if bind:
                self.socket.curve_server = True
            else:
                self.socket.curve_serverkey = security["server"].encode()

    def wait_for(self, *events):
        """The next one of these events, and its value."""
        while self.monitor.poll(PATIENCE_MS):
            event = recv_monitor_message(self.monitor)
            if event["event"] in events:
                return event["event"], event["value"]
        raise TimeoutError(f"none of the events {events} happened")

    def handshake(self):
        event, value = self.wait_for(*HANDSHAKE)
        return HANDSHAKE[event], value

    def close(self):
        self.socket.disable_monitor()
        self.monitor.close()
        self.socket.close()

    def send(self, *frames):
        self.socket.send_multipart(frames)

    def receive(self):
        return self.socket.recv_multipart()


def ask(peer):
    peer.send(b"ping")
    return peer.receive()


def answer(peer):
    question = peer.receive()
    peer.send(b"pong")
    return question


def converse(peer):
    """Many frames, long ones and empty ones, there and back; then many messages."""
    frames = [b"a", b"", b"x" * 255, b"y" * 256, b"z" * 60_000, b""]
    peer.send(*frames)
    echo = peer.receive()
    for number in range(1000):
        peer.send(str(number).encode())
    for number in range(1000):
        assert peer.receive() == [str(number).encode()]
    return [b"the same"] if echo == frames else echo


def answer_behind_an_envelope(peer):
    """As a ROUTER hears a REQ: the message stands behind an empty frame."""
    identity, delimiter, question = peer.receive()
    peer.send(identity, delimiter, b"pong")
    return [question]


def ask_behind_an_envelope(peer):
    """As a DEALER asks a REP."""
    peer.send(b"", b"pong")
    return peer.receive()


def route(peer):
    identity, greeting = peer.receive()
    peer.send(identity, b"back", b"forth")
    return [greeting, *peer.receive()[1:]]


def publish(peer):
    """Nobody tells a PUB that it is subscribed to, so it publishes until the other end has enough."""
    peer.wait_for(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    while not peer.monitor.poll(5):
        peer.send(b"temperature", b"21.5")
    peer.wait_for(zmq.EVENT_DISCONNECTED)
    return []


def publish_when_asked(peer):
    asked = peer.receive()
    peer.send(b"temperature", b"21.5")
    peer.wait_for(zmq.EVENT_DISCONNECTED)
    return asked


def subscribe(peer):
    peer.socket.subscribe(b"temp")
    received = peer.receive()
    peer.socket.unsubscribe(b"temp")
    peer.socket.subscribe(b"end")
    return received + peer.receive()


def subscribe_by_message(peer):
    peer.send(b"\x01temp")
    received = peer.receive()
    peer.send(b"\x00temp")
    peer.send(b"\x01end")
    return received + peer.receive()


def push(peer):
    for number in range(100):
        peer.send(b"job", str(number).encode())
    return []


def pull(peer):
    return peer.receive()


def be_watched(peer):
    """Both ends ask for signs of life, and both give them; the connection is there afterwards."""
    peer.send(b"begin")
    end = peer.receive()
    peer.send(b"still here")
    return end + peer.receive()


def fail(peer):
    outcome, value = peer.handshake()
    return [outcome.encode(), str(value).encode()]


EXCHANGES = {
    "REQ": (zmq.REQ, ask),
    "REP": (zmq.REP, answer),
    "DEALER": (zmq.DEALER, converse),
    "ROUTER": (zmq.ROUTER, route),
    "ROUTER of a REQ": (zmq.ROUTER, answer_behind_an_envelope),
    "DEALER of a REP": (zmq.DEALER, ask_behind_an_envelope),
    "PUB": (zmq.PUB, publish),
    "XPUB": (zmq.XPUB, publish_when_asked),
    "SUB": (zmq.SUB, subscribe),
    "XSUB": (zmq.XSUB, subscribe_by_message),
    "PUSH": (zmq.PUSH, push),
    "PULL": (zmq.PULL, pull),
    "PAIR": (zmq.PAIR, converse),
    "heartbeat": (zmq.DEALER, be_watched),
    "failure": (zmq.DEALER, fail),
}


def main():
    settings = json.loads(sys.argv[1])
    bind, security = settings["bind"], settings["security"]
    context = zmq.Context()
    authenticator = ThreadAuthenticator(context)
    authenticator.start()
    authenticator.configure_plain(domain="*", passwords=PASSWORDS)
    authenticator.configure_curve(domain="*", location=zmq.auth.CURVE_ALLOW_ANY)
    ports = iter(settings.get("ports") or [settings.get("port")] * len(settings["sockets"]))
    for name in settings["sockets"]:
        kind, exchange = EXCHANGES[name]
        peer = Peer(context, kind, security, bind)
        if name == "heartbeat":
            peer.socket.heartbeat_ivl, peer.socket.heartbeat_timeout, peer.socket.heartbeat_ttl = 50, 5000, 5000
        if bind:
            print(peer.socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
        else:
            peer.socket.connect(f"tcp://127.0.0.1:{next(ports)}")
        received = exchange(peer)
        print(json.dumps([frame.decode("latin-1") for frame in received]), flush=True)
        peer.close()
    authenticator.stop()
    context.term()


try:
    main()
except BaseException:
    # The authenticator's thread would keep the process, and the test, waiting for ever.
    traceback.print_exc()
    os._exit(1)
