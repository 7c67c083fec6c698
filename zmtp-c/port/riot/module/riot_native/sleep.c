/* A sleep that no signal is lost in front of. */

#include "sleep.h"

#include <signal.h>
#include <stddef.h>

#include "native_internal.h"

/**
 * In place of pause(), which RIOT native calls when no thread has anything to do. It has looked for signals before: one that comes between the two is kept, and
 * whoever should be woken by it sleeps until another one comes, or for ever.
 */
static int sleep_until_signalled(void)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    if (_native_pending_signals == 0) {
        (void)sigsuspend(&before);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return -1;
}

void riot_native_sleep_well(void)
{
    real_pause = sleep_until_signalled;
}
