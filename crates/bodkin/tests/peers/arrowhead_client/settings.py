"""A client of the library from the settings that the test gives as JSON: its own name and place, its files, the core systems'."""

import json

from arrowhead_client.client.implementations import SyncClient

SERVICE = {"protocol": "HTTP", "payload_format": "JSON", "access_policy": "TOKEN"}


def client(text):
    settings = json.loads(text)
    core = {
        name: {"system_name": name, "address": "127.0.0.1", "port": port}
        for name, port in settings["core"].items()
    }
    return SyncClient.create(
        system_name=settings["name"],
        address="127.0.0.1",
        port=settings["port"],
        config=core,
        certfile=settings["certificate"],
        keyfile=settings["key"],
        cafile=settings["authorities"],
    )
