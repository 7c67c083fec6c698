/* IEEE 802.15.4 by RIOT's `socket_zep`, with what its SubMAC leaves to a radio that can do more. */

#include "radio.h"

#include <errno.h>

#include "container.h"
#include "net/gnrc/netif/pktq.h"
#include "net/ieee802154.h"
#include "net/netdev/ieee802154_submac.h"
#include "random.h"

/** How long a frame's acknowledgement is waited for, in microseconds: a radio's comes after 544, a process' when it is its turn. */
#define ACKNOWLEDGED_US 5000u

/** Times that a frame is sent again at the most, from the queue of its interface: the radio listens in between. */
#define AGAIN_MAX 15u

static const netdev_driver_t *theirs;
static unsigned again_count; /* times that the frame under way was sent again */

static netdev_ieee802154_submac_t *radio_of(netdev_t *device)
{
    return container_of(container_of(device, netdev_ieee802154_t, netdev), netdev_ieee802154_submac_t, dev);
}

/**
 * Reads a frame. RIOT sends its acknowledgement in here, and marks that as sent: the next frame's arrival takes the mark for its own, which with assertions is the program's end, and who waits to be told
 * of a frame of its own is told of the acknowledgement.
 */
static int read_frame(netdev_t *device, void *octets, size_t size, void *info)
{
    netdev_ieee802154_submac_t *radio = radio_of(device);
    int sent = radio->bytes_tx;
    int count = theirs->recv(device, octets, size, info);
    radio->bytes_tx = sent;
    radio->dispatch = false;
    return count;
}

/** Begins to send a frame, once: unless one waits to be read, which would be lost for it, or, in every other turn, whoever has collided with it has the same clock. */
static int send_frame(netdev_t *device, const iolist_t *frame)
{
    netdev_ieee802154_submac_t *radio = radio_of(device);
    int waits = (radio->isr_flags & NETDEV_SUBMAC_FLAGS_RX_DONE) != 0u;
    int begun = (waits || ((again_count > 0u) && ((random_uint32() & 1u) != 0u))) ? -EBUSY : theirs->send(device, frame);
    if (begun >= 0) {
        radio->submac.retrans = CONFIG_IEEE802154_DEFAULT_MAX_FRAME_RETRANS; /* so that it tries no more by itself */
    }
    return begun;
}

/**
 * What became of a frame: without an acknowledgement it goes back to its interface's queue, and comes again in CONFIG_GNRC_NETIF_PKTQ_TIMER_US. RIOT's SubMAC would try at once, and is deaf
 * from its first try to its last one: two stations that speak at the same time then never hear each other.
 */
static int tell_sent(netdev_t *device, void *info)
{
    int sent = theirs->confirm_send(device, info);
    again_count = ((sent == -EHOSTUNREACH) && (again_count < AGAIN_MAX)) ? (again_count + 1u) : 0u;
    if (again_count > 0u) {
        gnrc_netif_pktq_sched_get(device->context);
        sent = -EBUSY;
    }
    return sent;
}

void riot_native_share_radio(netdev_t *device)
{
    static netdev_driver_t ours;
    theirs = device->driver;
    ours = *theirs;
    ours.recv = read_frame;
    ours.send = send_frame;
    ours.confirm_send = tell_sent;
    radio_of(device)->submac.ack_timeout_us = ACKNOWLEDGED_US;
    device->driver = &ours;
}
