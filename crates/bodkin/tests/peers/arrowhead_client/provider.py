"""Registers the service `reverse`, which needs a token, and offers it until it is terminated.

`provider.py SETTINGS`: the settings as JSON (settings.py).
"""

import signal
import sys

import settings

provider = settings.client(sys.argv[1])


@provider.provided_service("reverse", "reverse", method="POST", **settings.SERVICE)
def reverse(request):
    return {"reversed": list(reversed(request.read_json()["values"]))}


# The library ends in good order by an interrupt only, which programs in the background do not get.
signal.signal(signal.SIGTERM, signal.default_int_handler)
provider.run_forever()
