"""A client that publishes 500 events/s and registers 20 services/s, and reports its latency.

usage: victim.py OFFSET SECONDS [CERTIFICATES]
"""

import json
import sys
import threading
import time

from clients import Kept, context

SOURCE = "127.0.0.3"
SYSTEM = {"systemName": "victim", "address": SOURCE, "port": 7000}


def event(number):
    return "POST", "/eventhandler/publish", {"eventType": "VICTIM", "source": SYSTEM, "payload": str(number)}


def registration(number):
    form = {"serviceDefinition": "victim", "providerSystem": SYSTEM, "serviceUri": f"/{time.time_ns()}", "interfaces": ["HTTP-INSECURE-JSON"]}
    return "POST", "/serviceregistry/register", form


def run(port, rate, seconds, tls, expected, request, found):
    """Sends RATE requests a second at fixed times. The latency counts from the time at which a request is due."""
    client, begin = Kept(SOURCE, port, tls), time.monotonic() + 0.5
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        time.sleep(max(0, due - time.monotonic()))
        try:
            status = client.request(*request(number))[0]
        except OSError as error:
            status = type(error).__name__
        found.append((time.monotonic() - due, status == expected, status))


def summary(found):
    times = sorted(latency * 1000 for latency, *_ in found)
    failed = [status for _, is_right, status in found if not is_right]
    at = lambda part: round(times[min(len(times) - 1, int(part * len(times)))], 2)
    return {"requests": len(found), "failed": len(failed), "first": str(failed[:1]), "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1)}


if __name__ == "__main__":
    offset, seconds = int(sys.argv[1]), float(sys.argv[2])
    tls = context(sys.argv[3], "victim") if len(sys.argv) > 3 else None
    Kept(SOURCE, 8443 + offset, tls).request("POST", "/serviceregistry/register-system", SYSTEM)
    events, registrations = [], []
    threads = [
        threading.Thread(target=run, args=(8455 + offset, 500, seconds, tls, 200, event, events)),
        threading.Thread(target=run, args=(8443 + offset, 20, seconds, tls, 201, registration, registrations)),
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(json.dumps({"events": summary(events), "registrations": summary(registrations), "all": summary(events + registrations)}))
