/* All of it, for main(). */

#include "riot_native.h"

#include "sleep.h"
#ifdef MODULE_SOCKET_ZEP
#include "net/gnrc/netif.h"
#include "radio.h"
#endif

void riot_native_begin(void)
{
    riot_native_sleep_well();
#ifdef MODULE_SOCKET_ZEP
    riot_native_share_radio(gnrc_netif_iter(NULL)->dev);
#endif
}
