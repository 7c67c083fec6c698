/* Every seed through the target, and then so many changed ones: `replay FOLDER ROUNDS [SEED]`. What fails is printed, with the number that repeats it. */

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS_MAX 64
#define SEED_SIZE_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t size);

typedef struct {
    uint8_t octets[SEED_SIZE_MAX];
    size_t size;
} seed_t;

static seed_t seeds[SEEDS_MAX];
static size_t seeds_count;
static uint64_t state;
static unsigned long round_number;

/** xorshift64*: a step of Marsaglia's generator (J. Stat. Softw. 8, 14) and Vigna's multiplication. */
static uint32_t draw(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545f4914f6cdd1dull) >> 33) % below;
}

static void read_seeds(const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while ((directory != NULL) && ((entry = readdir(directory)) != NULL) && (seeds_count < SEEDS_MAX)) {
        char path[1024];
        FILE *file;
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        file = (entry->d_name[0] == '.') ? NULL : fopen(path, "rb");
        if (file != NULL) {
            seeds[seeds_count].size = fread(seeds[seeds_count].octets, 1, SEED_SIZE_MAX, file);
            seeds_count++;
            (void)fclose(file);
        }
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
}

/** One seed with a few octets changed, doubled, taken away, or taken from another one. */
static void change(seed_t *seed)
{
    uint32_t changes = 1u + draw(4);
    *seed = seeds[draw((uint32_t)seeds_count)];
    while ((changes-- > 0u) && (seed->size > 2u)) {
        uint32_t at = draw((uint32_t)seed->size);
        uint32_t count = draw((uint32_t)(seed->size - at));
        const seed_t *other = &seeds[draw((uint32_t)seeds_count)];
        switch (draw(5)) {
        case 0:
            seed->octets[at] = (uint8_t)draw(256);
            break;
        case 1:
            seed->octets[at] ^= (uint8_t)(1u << draw(8));
            break;
        case 2:
            memmove(&seed->octets[at], &seed->octets[at + count], seed->size - at - count);
            seed->size -= count;
            break;
        case 3:
            if ((seed->size + count) <= SEED_SIZE_MAX) {
                memmove(&seed->octets[at + count], &seed->octets[at], seed->size - at);
                seed->size += count;
            }
            break;
        default:
            count = draw((uint32_t)other->size + 1u);
            if ((at + count) <= SEED_SIZE_MAX) {
                memcpy(&seed->octets[at], other->octets, count);
                seed->size = ((at + count) > seed->size) ? (at + count) : seed->size;
            }
            break;
        }
    }
}

static void died(int number)
{
    (void)number;
    (void)fprintf(stderr, "replay: it was round %lu\n", round_number);
    _Exit(1);
}

int main(int count, char **arguments)
{
    static seed_t changed;
    size_t i;
    unsigned long rounds = (count > 2) ? strtoul(arguments[2], NULL, 10) : 0u;
    state = (count > 3) ? (strtoull(arguments[3], NULL, 10) | 1u) : 1u;
    printf("replay %s %lu %llu\n", (count > 1) ? arguments[1] : ".", rounds, (unsigned long long)state);
    (void)fflush(stdout);
    (void)signal(SIGABRT, died);
    read_seeds((count > 1) ? arguments[1] : ".");
    for (i = 0; i < seeds_count; i++) {
        (void)LLVMFuzzerTestOneInput(seeds[i].octets, seeds[i].size);
    }
    for (round_number = 0; (round_number < rounds) && (seeds_count > 0u); round_number++) {
        change(&changed);
        (void)LLVMFuzzerTestOneInput(changed.octets, changed.size);
    }
    printf("%s %lu seeds and %lu changed ones\n", (seeds_count > 0u) ? "ok" : "not ok", (unsigned long)seeds_count, rounds);
    return seeds_count == 0u;
}
