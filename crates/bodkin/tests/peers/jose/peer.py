"""Opens and makes tokens with joserfc.

`peer.py open FOLDER`: for each token on standard input its claims as JSON, or `refused`, a line each.
`peer.py make FOLDER`: for each line `NAME CLAIMS` on standard input tokens of every kind, a line `NAME KIND TOKEN` each.
FOLDER has the keys: provider, authorization and other, each as NAME.pem (private) and NAME-public.pem.
"""

import base64
import hmac
import json
import pathlib
import sys
import time

from joserfc import jwe, jws, jwt
from joserfc.jwk import RSAKey

SIGNATURE = "RS512"
SEAL = ("RSA-OAEP-256", "A256CBC-HS512")
CLAIMS = jwt.JWTClaimsRegistry(
    now=lambda: int(time.time()),
    jti={"essential": True},
    iss={"essential": True, "value": "Authorization"},
    nbf={"essential": True},
    exp={"essential": True},
)


def read_key(folder, name):
    return RSAKey.import_key((pathlib.Path(folder) / f"{name}.pem").read_text())


def part(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def open_token(token, provider, authorization):
    sealed = jwe.decrypt_compact(token, provider, algorithms=list(SEAL))
    if sealed.headers() != {"alg": SEAL[0], "enc": SEAL[1], "cty": "JWT"}:
        raise ValueError(f"another header: {sealed.headers()}")
    signed = jws.deserialize_compact(sealed.plaintext, authorization, algorithms=[SIGNATURE])
    claims = json.loads(signed.payload)
    CLAIMS.validate(claims)
    return claims


def open_all(folder):
    provider, authorization = read_key(folder, "provider"), read_key(folder, "authorization-public")
    for line in sys.stdin:
        try:
            print(json.dumps(open_token(line.strip(), provider, authorization)))
        except Exception as error:  # Whatever the library raises is a refusal.
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            print("refused")


def sign(payload, key, algorithm=SIGNATURE):
    return jws.serialize_compact({"alg": algorithm}, payload, key, algorithms=[algorithm])


def seal(content, key, algorithm=SEAL[0], encryption=SEAL[1], **further):
    header = {"alg": algorithm, "enc": encryption, "cty": "JWT", **further}
    return jwe.encrypt_compact(header, content, key, algorithms=[algorithm, encryption, "DEF"])


def kinds(claims, folder):
    authorization, other = read_key(folder, "authorization"), read_key(folder, "other")
    provider, stranger = read_key(folder, "provider-public"), read_key(folder, "other-public")
    signed = sign(claims, authorization)
    unsigned = f"{part(json.dumps({'alg': 'none'}).encode())}.{part(claims.encode())}."
    # By hand: joserfc itself refuses a public key in such a place.
    to_mac = f"{part(json.dumps({'alg': 'HS512'}).encode())}.{part(claims.encode())}"
    mac = hmac.digest(read_key(folder, "authorization-public").as_der(private=False), to_mac.encode(), "sha512")
    yield "right", seal(signed, provider)
    yield "another-signer", seal(sign(claims, other), provider)
    yield "another-recipient", seal(signed, stranger)
    yield "rs256", seal(sign(claims, authorization, "RS256"), provider)
    yield "ps512", seal(sign(claims, authorization, "PS512"), provider)
    yield "hs512-with-the-public-key", seal(f"{to_mac}.{part(mac)}", provider)
    yield "none", seal(unsigned, provider)
    yield "not-signed", seal(claims, provider)
    yield "not-sealed", signed
    yield "rsa-oaep", seal(signed, provider, algorithm="RSA-OAEP")
    yield "a128cbc-hs256", seal(signed, provider, encryption="A128CBC-HS256")
    yield "a256gcm", seal(signed, provider, encryption="A256GCM")
    yield "compressed", seal(signed, provider, zip="DEF")


def make_all(folder):
    for line in sys.stdin:
        name, claims = line.strip().split(" ", 1)
        for kind, token in kinds(claims, folder):
            print(name, kind, token)


if __name__ == "__main__":
    {"open": open_all, "make": make_all}[sys.argv[1]](sys.argv[2])
