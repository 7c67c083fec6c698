/** Checks of the tests: each says where it failed and goes on, so that one run shows all that is wrong. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <string.h>

extern int checks_failed;

/** What the failing check was about, in a few words. */
extern const char *check_about;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            checks_failed++;                                                                                           \
            printf("%s:%d: %s: not so: %s\n", __FILE__, __LINE__, check_about, #what);                                 \
        }                                                                                                              \
    } while (0)

#define CHECK_TEXT(found, expected)                                                                                    \
    do {                                                                                                               \
        if (strcmp((found), (expected)) != 0) {                                                                        \
            checks_failed++;                                                                                           \
            printf("%s:%d: %s:\n   found    %s\n   expected %s\n", __FILE__, __LINE__, check_about, (found), (expected)); \
        }                                                                                                              \
    } while (0)

/** Ends a test: its line for whoever counts, and the status of the program. */
#define TEST(name)                                                                                                     \
    do {                                                                                                               \
        int before = checks_failed;                                                                                    \
        name();                                                                                                        \
        printf("%s %s\n", (checks_failed == before) ? "ok" : "not ok", #name);                                        \
    } while (0)

#endif
