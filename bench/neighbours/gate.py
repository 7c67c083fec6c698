"""Measures what clients that use up a server's resources cost another client of it.

usage: gate.py BODKIN FOLDER [SECONDS [MODE]]      MODE: insecure, secure; both if it is not given

Two clouds run on core 0, the victim and the attackers on core 1. The victim runs alone, then with all attackers at its own cloud, then
with the same attackers at the other cloud (the control). All of that in insecure and in secure mode. Needs two cores.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["bodies", "connections", "topics", "metadata"]
OWN, OTHER = 7100, 7300


def start(bodkin, folder, offset, secure):
    shutil.rmtree(folder, ignore_errors=True)
    mode = [] if secure else ["--insecure"]
    log = open(folder + ".log", "w")
    command = ["taskset", "-c", "0", bodkin, "up", "--data", folder, "--port-offset", str(offset), *mode]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
    time.sleep(3)
    if secure:
        certificates = os.path.join(folder, "certificates")
        for name in ["victim", "attacker"]:
            subprocess.run([bodkin, "cert", "issue", "--data", folder, "--system", name, "--san", "127.0.0.1", "--out", certificates],
                           check=True, stdout=subprocess.DEVNULL)
    return process


def resident_mib(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def python(script, *arguments):
    return subprocess.Popen(["taskset", "-c", "1", sys.executable, os.path.join(HERE, script), *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True)


def measure(folders, seconds, attacked, secure):
    certificates = lambda folder: [os.path.join(folder, "certificates")] if secure else []
    attackers = []
    if attacked is not None:
        attackers = [python("attack.py", kind, attacked, seconds + 2, *certificates(folders[attacked])) for kind in KINDS]
        time.sleep(1)
    victim = python("victim.py", OWN, seconds, *certificates(folders[OWN]))
    result = json.loads(victim.communicate()[0])
    told = [attacker.communicate()[0].strip() for attacker in attackers]
    return result, told


def main():
    bodkin, folder = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 60
    os.makedirs(folder, exist_ok=True)
    for secure in [False, True]:
        if len(sys.argv) > 4 and sys.argv[4] != ("secure" if secure else "insecure"):
            continue
        mode = "secure" if secure else "insecure"
        folders = {offset: os.path.join(folder, f"{mode}-{offset}") for offset in [OWN, OTHER]}
        clouds = {offset: start(bodkin, data, offset, secure) for offset, data in folders.items()}
        before = resident_mib(clouds[OWN])
        results = {}
        for name, attacked in [("alone", None), ("attacked", OWN), ("control", OTHER)]:
            results[name], told = measure(folders, seconds, attacked, secure)
            memory = resident_mib(clouds[OWN])
            print(mode, name, json.dumps(results[name]), f"RSS {before:.0f} -> {memory:.0f} MiB", *told, sep="\n  ", flush=True)
        limit = max(2 * results["control"]["all"]["p99_ms"], 10)
        p99, failed = results["attacked"]["all"]["p99_ms"], results["attacked"]["all"]["failed"]
        print(f"{mode}: p99 {p99} ms, limit {limit} ms, failed {failed}:", "passed" if p99 <= limit and not failed else "FAILED", flush=True)
        for process in clouds.values():
            process.send_signal(signal.SIGTERM)
            process.wait()


main()
