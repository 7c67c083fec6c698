"""Orchestrates the service `reverse` and calls who offers it: with its token, with a token that was tampered with, without one.

`consumer.py SETTINGS`: the settings as JSON (settings.py). Prints one JSON document: `found` (whether anybody is offered), and if
so `calls`, each with the answer's `status` and `body`.
"""

import json
import sys

import settings
from arrowhead_client.rules import OrchestrationRule

DEFINITION = "reverse"
VALUES = [1, 2, 3]


def with_token(rule, token):
    return OrchestrationRule(rule._consumed_service, rule._provider_system, rule.method, token)


def call(consumer, rule):
    consumer.orchestration_rules.store(rule)
    answer = consumer.consume_service(DEFINITION, json={"values": VALUES})
    return {"status": answer.status_code, "body": answer.read_json()}


def main():
    consumer = settings.client(sys.argv[1])
    consumer.setup()
    consumer.add_orchestration_rule(DEFINITION, "POST", **settings.SERVICE)
    rule = consumer.orchestration_rules.get(DEFINITION)
    if rule is None:
        print(json.dumps({"found": False}))
        return
    token = rule.authorization_token
    place = len(token) // 2
    tampered = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
    calls = [call(consumer, with_token(rule, token)) for token in (token, tampered, "")]
    print(json.dumps({"found": True, "calls": calls}))


main()
