/**
 * What is built. Every value may be set in front of this header or by the compiler's -D; what is not asked for costs no octet.
 *
 * A node that does nothing but push readings to a broker is built with
 * `-DZMTP_WITH_ALL_TYPES=0 -DZMTP_WITH_PUSH=1 -DZMTP_WITH_PLAIN=0 -DZMTP_WITH_PING=0 -DZMTP_WITH_REASONS=0`.
 */
#ifndef ZMTP_CONFIG_H
#define ZMTP_CONFIG_H

/** Whether the socket types that are not named one by one are there. */
#ifndef ZMTP_WITH_ALL_TYPES
#define ZMTP_WITH_ALL_TYPES 1
#endif

#ifndef ZMTP_WITH_REQ
#define ZMTP_WITH_REQ ZMTP_WITH_ALL_TYPES
#endif
#ifndef ZMTP_WITH_REP
#define ZMTP_WITH_REP ZMTP_WITH_ALL_TYPES
#endif
#ifndef ZMTP_WITH_DEALER
#define ZMTP_WITH_DEALER ZMTP_WITH_ALL_TYPES
#endif
#ifndef ZMTP_WITH_ROUTER
#define ZMTP_WITH_ROUTER ZMTP_WITH_ALL_TYPES
#endif
#ifndef ZMTP_WITH_PUB
#define ZMTP_WITH_PUB ZMTP_WITH_ALL_TYPES
#endif
#ifndef ZMTP_WITH_SUB
#define ZMTP_WITH_SUB ZMTP_WITH_ALL_TYPES
#endif
#ifndef ZMTP_WITH_PUSH
#define ZMTP_WITH_PUSH ZMTP_WITH_ALL_TYPES
#endif
#ifndef ZMTP_WITH_PULL
#define ZMTP_WITH_PULL ZMTP_WITH_ALL_TYPES
#endif
#ifndef ZMTP_WITH_PAIR
#define ZMTP_WITH_PAIR ZMTP_WITH_ALL_TYPES
#endif

/** Mechanism PLAIN (RFC 24), both ends. */
#ifndef ZMTP_WITH_PLAIN
#define ZMTP_WITH_PLAIN 1
#endif

/** Mechanism CURVE (RFC 25, RFC 26) of a client, with cryptography of the caller's (zmtp_curve.h). */
#ifndef ZMTP_WITH_CURVE
#define ZMTP_WITH_CURVE 0
#endif

/** And of a server, besides. */
#ifndef ZMTP_WITH_CURVE_SERVER
#define ZMTP_WITH_CURVE_SERVER 0
#endif

/** PING is answered, told and can be sent (RFC 37). Without it a PING is ignored: libzmq then drops us if it was told to heartbeat. */
#ifndef ZMTP_WITH_PING
#define ZMTP_WITH_PING 1
#endif

/** Faults have a text, and the peer is told it by ERROR. Without it the connection is closed without a word. */
#ifndef ZMTP_WITH_REASONS
#define ZMTP_WITH_REASONS 1
#endif

/** The greeting of a listener may wait for the peer's: on a half-duplex radio two greetings at once collide. */
#ifndef ZMTP_WITH_WAITING
#define ZMTP_WITH_WAITING 1
#endif

/** The handshake may tell a property of the application's besides type and identity. */
#ifndef ZMTP_WITH_PROPERTY
#define ZMTP_WITH_PROPERTY 1
#endif

/** Events may say which trace they are of (bodkin_publish_traced, and `trace` of what is heard). */
#ifndef BODKIN_WITH_TRACES
#define BODKIN_WITH_TRACES 1
#endif

/** A node hears events, too (bodkin_subscriber.h). */
#ifndef BODKIN_WITH_SUBSCRIBER
#define BODKIN_WITH_SUBSCRIBER 1
#endif

#endif
