/* What a peer may do wrong: each is refused where it stands, told as far as it may be told, and nothing is taken behind it. */

#include <stdlib.h>

#include "check.h"
#include "json.h"
#include "party.h"

int checks_failed = 0;
const char *check_about = "";

static party_t party;

#define NULL_GREETING "ff00000000000000017f0301" "4e554c4c00000000000000000000000000000000" \
                      "0000000000000000000000000000000000000000000000000000000000000000"
#define PLAIN_GREETING "ff00000000000000017f0301" "504c41494e000000000000000000000000000000" \
                       "0000000000000000000000000000000000000000000000000000000000000000"
#define READY_ROUTER "041c0552454144590b536f636b65742d5479706500000006524f55544552"

/** A row: what a DEALER that connects reads, which fault it is, and whether the peer is told. */
typedef struct {
    const char *about;
    const char *reads;
    int32_t fault;
    int is_told;
} row_t;

static const row_t ROWS[] = {
    {"no signature", "00", ZMTP_BAD_GREETING, 0},
    {"ZMTP 1.0, which begins with an identity", "0100", ZMTP_BAD_GREETING, 0},
    {"a signature whose last octet is even", "ff00000000000000017e", ZMTP_BAD_GREETING, 0},
    {"ZMTP 2.0", "ff00000000000000017f01050000", ZMTP_BAD_GREETING, 0},
    {"another mechanism", PLAIN_GREETING, ZMTP_BAD_MECHANISM, 0},
    {"a message in front of READY", NULL_GREETING "000168", ZMTP_UNEXPECTED, 1},
    {"another command in front of READY", NULL_GREETING "04080757454c434f4d45", ZMTP_BAD_COMMAND, 1},
    {"a name longer than the command", NULL_GREETING "0402ff52", ZMTP_BAD_COMMAND, 1},
    {"no name", NULL_GREETING "0400", ZMTP_BAD_COMMAND, 1},
    {"READY without Socket-Type", NULL_GREETING "0406055245414459", ZMTP_BAD_METADATA, 1},
    {"READY with half a property", NULL_GREETING "040a0552454144590b536f63", ZMTP_BAD_METADATA, 1},
    {"a value longer than the command", NULL_GREETING "04190552454144590b536f636b65742d54797065ffffffff524550", ZMTP_BAD_METADATA, 1},
    {"a name of no octets", NULL_GREETING "040b0552454144590000000000", ZMTP_BAD_METADATA, 1},
    {"Socket-Type twice",
     NULL_GREETING "042c055245414459" "0b536f636b65742d5479706500000003524550" "0b536f636b65742d5479706500000003524550", ZMTP_BAD_METADATA, 1},
    {"an identity that begins with 00",
     NULL_GREETING "042a055245414459" "0b536f636b65742d5479706500000003524550" "084964656e7469747900000004" "00616263", ZMTP_BAD_METADATA, 1},
    {"an unknown socket type", NULL_GREETING "041b0552454144590b536f636b65742d54797065000000055241444" "94f", ZMTP_BAD_TYPE, 1},
    {"a socket type that does not fit", NULL_GREETING "04190552454144590b536f636b65742d5479706500000003505542", ZMTP_BAD_TYPE, 1},
    {"a command of the handshake beyond the buffer", NULL_GREETING "04ff", ZMTP_TOO_LONG, 1},
    {"ERROR in front of READY", NULL_GREETING "0409054552524f5202" "6e6f", ZMTP_PEER_ERROR, 0},
    {"reserved flags", NULL_GREETING READY_ROUTER "08", ZMTP_BAD_FRAME, 1},
    {"a command with more", NULL_GREETING READY_ROUTER "05", ZMTP_BAD_FRAME, 1},
    {"a size whose highest bit is set", NULL_GREETING READY_ROUTER "028000000000000000", ZMTP_BAD_FRAME, 1},
    {"a size beyond 32 bits", NULL_GREETING READY_ROUTER "020000000100000000", ZMTP_TOO_LONG, 1},
    {"a frame beyond the limit", NULL_GREETING READY_ROUTER "020000000000000101", ZMTP_TOO_LONG, 1},
    {"a command beyond the buffer", NULL_GREETING READY_ROUTER "0441", ZMTP_TOO_LONG, 1},
    {"PING without a time to live", NULL_GREETING READY_ROUTER "04060450494e4700", ZMTP_BAD_COMMAND, 1},
    {"PING with too long a context",
     NULL_GREETING READY_ROUTER "04180450494e470000" "3030303030303030303030303030303030", ZMTP_BAD_COMMAND, 1},
    {"ERROR without a reason", NULL_GREETING READY_ROUTER "0406054552524f52", ZMTP_PEER_ERROR, 0},
};

static const zmtp_settings_t DEALER = {.socket_type = ZMTP_DEALER, .frame_octets_max = 256};

static void every_fault_is_refused_where_it_stands(void)
{
    uint8_t octets[512];
    uint32_t row;
    for (row = 0; row < (sizeof ROWS / sizeof ROWS[0]); row++) {
        uint32_t size = (uint32_t)json_octets(ROWS[row].reads, octets, sizeof octets - 1u);
        uint32_t cut;
        check_about = ROWS[row].about;
        for (cut = 0; cut <= size; cut++) {
            zmtp_event_t event;
            uint8_t more = 0;
            party_open(&party, &DEALER, 64);
            party_poll(&party);
            party_forget(&party);
            party_receive(&party, octets, size, cut);
            CHECK(party.last == ROWS[row].fault);
            CHECK(zmtp_sink(&party.zmtp, &more, 1) == 1u);
            CHECK(zmtp_next(&party.zmtp, &event) == ROWS[row].fault);
            CHECK(party_put(&party, 0, "x", 1) == (int32_t)ZMTP_NOT_READY);
            party_poll(&party);
            CHECK((party.out_size > 0u) == (ROWS[row].is_told != 0));
            CHECK((party.out_size == 0u) || (memcmp(&party.out[2], "\5ERROR", 6) == 0));
        }
    }
}

/** A name and password that a server of PLAIN reads. */
static int32_t plain_server_told(const char *hello)
{
    static const zmtp_settings_t SERVER = {.socket_type = ZMTP_ROUTER, .mechanism = ZMTP_PLAIN, .is_server = 1};
    uint8_t octets[256];
    uint32_t size = (uint32_t)json_octets(PLAIN_GREETING, octets, sizeof octets);
    party_open(&party, &SERVER, 128);
    party_receive(&party, octets, size, size);
    party_poll(&party);
    party_forget(&party);
    size = (uint32_t)json_octets(hello, octets, sizeof octets);
    party_receive(&party, octets, size, size);
    party_poll(&party);
    return party.last;
}

static void who_is_not_let_in_by_plain_is_told(void)
{
    check_about = "PLAIN";
    CHECK(plain_server_told("0413" "0548454c4c4f" "0561646d696e" "06736563726574") == (int32_t)ZMTP_NONE);
    CHECK(plain_server_told("0412" "0548454c4c4f" "0561646d696e" "0577726f6e67") == (int32_t)ZMTP_DENIED);
    CHECK(memcmp(&party.out[2], "\5ERROR", 6) == 0);
    CHECK(plain_server_told("0406" "0548454c4c4f") == (int32_t)ZMTP_BAD_COMMAND);
    CHECK(plain_server_told("0408" "0548454c4c4f" "0561") == (int32_t)ZMTP_BAD_COMMAND);
    CHECK(plain_server_told("0409" "0548454c4c4f" "000000") == (int32_t)ZMTP_BAD_COMMAND);
    CHECK(plain_server_told("041c0552454144590b536f636b65742d5479706500000006524f55544552") == (int32_t)ZMTP_BAD_COMMAND);
}

static void a_client_of_plain_tells_no_error(void)
{
    static const zmtp_settings_t CLIENT = {.socket_type = ZMTP_DEALER, .mechanism = ZMTP_PLAIN};
    uint8_t octets[256];
    uint32_t size = (uint32_t)json_octets(PLAIN_GREETING "0406055245414459", octets, sizeof octets);
    check_about = "a client of PLAIN";
    party_open(&party, &CLIENT, 64);
    party_poll(&party);
    party_forget(&party);
    party_receive(&party, octets, size, size);
    party_poll(&party);
    CHECK(party.last == (int32_t)ZMTP_BAD_COMMAND);
    CHECK(party.out_size == 0u);
}

static void what_the_caller_does_wrong_changes_nothing(void)
{
    zmtp_t z;
    zmtp_settings_t settings = DEALER;
    uint8_t buffer[64];
    uint8_t out[300];
    check_about = "the caller's faults";
    CHECK(zmtp_open(&z, &settings, buffer, 63) == (int32_t)ZMTP_ARGUMENT);
    CHECK(zmtp_open(&z, &settings, NULL, 64) == (int32_t)ZMTP_ARGUMENT);
    settings.socket_type = ZMTP_XPUB;
    CHECK(zmtp_open(&z, &settings, buffer, 64) == (int32_t)ZMTP_ARGUMENT);
    settings = DEALER;
    settings.mechanism = 2;
    CHECK(zmtp_open(&z, &settings, buffer, 64) == (int32_t)ZMTP_ARGUMENT);
    settings = DEALER;
    settings.identity.size = 256;
    CHECK(zmtp_open(&z, &settings, buffer, 64) == (int32_t)ZMTP_ARGUMENT);
    CHECK(zmtp_open(&z, &DEALER, buffer, 64) == 0);
    CHECK(zmtp_put(&z, 0, "x", 1, out, sizeof out) == (int32_t)ZMTP_NOT_READY);
    CHECK(zmtp_ping(&z, 1, "", 0, out, sizeof out) == (int32_t)ZMTP_NOT_READY);
    CHECK(zmtp_poll(&z, out, 63) == (int32_t)ZMTP_ROOM);
    CHECK(zmtp_poll(&z, out, 64) == 64);
    CHECK(zmtp_poll(&z, out, 64) == 30);
    CHECK(zmtp_poll(&z, out, 0) == 0);
    party_ready(&party, ZMTP_DEALER, ZMTP_ROUTER, 1, 64);
    CHECK(zmtp_put(&party.zmtp, 0, "abc", 3, out, 4) == (int32_t)ZMTP_ROOM);
    CHECK(zmtp_put(&party.zmtp, 0, "abc", 3, out, 5) == 5);
    CHECK(zmtp_ping(&party.zmtp, 1, out, 17, out, sizeof out) == (int32_t)ZMTP_ARGUMENT);
    CHECK(zmtp_subscribe(&party.zmtp, "", 0, out, sizeof out) == (int32_t)ZMTP_WRONG_TURN);
}

static void the_last_of_many_pings_is_answered(void)
{
    uint8_t octets[64];
    uint32_t size = (uint32_t)json_octets("04080450494e47000061" "04080450494e47000062", octets, sizeof octets);
    check_about = "many pings";
    party_ready(&party, ZMTP_PUSH, ZMTP_PULL, 0, 64);
    party_receive(&party, octets, size, size);
    party_poll(&party);
    CHECK((party.out_size == 8u) && (memcmp(party.out, "\4\6\4PONGb", 8) == 0));
}

static void an_unknown_command_is_ignored_between_the_frames_of_a_message(void)
{
    uint8_t octets[64];
    uint32_t size = (uint32_t)json_octets("010161" "0405044e455753" "040704" "50494e470000" "000162", octets, sizeof octets);
    check_about = "commands amid a message";
    party_ready(&party, ZMTP_PULL, ZMTP_PUSH, 1, 64);
    party_receive(&party, octets, size, size);
    CHECK_TEXT(party.told, "message 61 ping 0 s\n62\n");
}

int main(void)
{
    TEST(every_fault_is_refused_where_it_stands);
    TEST(who_is_not_let_in_by_plain_is_told);
    TEST(a_client_of_plain_tells_no_error);
    TEST(what_the_caller_does_wrong_changes_nothing);
    TEST(the_last_of_many_pings_is_answered);
    TEST(an_unknown_command_is_ignored_between_the_frames_of_a_message);
    return checks_failed != 0;
}
