/* TweetNaCl's functions with -DTWEETNACL, else libsodium's, which has those of NaCl under the same names. */

#include "nacl.h"

#ifdef TWEETNACL
#include "tweetnacl.h"
#else
#include <sodium.h>
#endif

#include "zmtp_tweetnacl.h"

zmtp_crypto_t nacl(void (*random)(uint8_t *out, uint32_t size))
{
    zmtp_crypto_t crypto = ZMTP_TWEETNACL(random);
    return crypto;
}
