#include "json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS 8
#define TEXT_MAX 16384
#define FILES_SIZE_MAX 65536u

const char *json_file(const char *folder, const char *name)
{
    static char memory[FILES_SIZE_MAX];
    static size_t used = 0;
    char path[4096];
    char *text = &memory[used];
    size_t room = FILES_SIZE_MAX - used;
    size_t size;
    FILE *file;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size = fread(text, 1, room, file);
    (void)fclose(file);
    if (size == room) {
        (void)fprintf(stderr, "%s: there is no room for it\n", path);
        exit(1);
    }
    used += size + 1u;
    return text;
}

static const char *blank(const char *at)
{
    while (isspace((unsigned char)*at) || (*at == ',') || (*at == ':')) {
        at++;
    }
    return at;
}

/** Behind a value: a text, an array or object with all that is in it, or a word. */
static const char *behind(const char *at)
{
    int depth = 0;
    at = blank(at);
    do {
        if (*at == '"') {
            for (at++; *at != '"'; at++) {
                at += (*at == '\\');
            }
            at++;
        } else if ((*at == '[') || (*at == '{')) {
            depth++;
            at++;
        } else if ((*at == ']') || (*at == '}')) {
            depth--;
            at++;
        } else if (depth > 0) {
            at++;
        } else {
            at += strcspn(at, ",]} \n");
        }
    } while (depth > 0);
    return at;
}

static const char *element(const char *at)
{
    at = blank(at);
    return ((*at == ']') || (*at == '}') || (*at == 0)) ? NULL : at;
}

const char *json_first(const char *array)
{
    return (array == NULL) ? NULL : element(blank(array) + 1);
}

const char *json_next(const char *at)
{
    return element(behind(at));
}

const char *json_member(const char *object, const char *name)
{
    const char *at = json_first(object);
    size_t size = strlen(name);
    while (at != NULL) {
        const char *value = blank(behind(at));
        if ((strncmp(at + 1, name, size) == 0) && (at[1 + size] == '"')) {
            return value;
        }
        at = json_next(value);
    }
    return NULL;
}

const char *json_string(const char *value)
{
    static char texts[TEXTS][TEXT_MAX];
    static int last = 0;
    char *text = texts[last = (last + 1) % TEXTS];
    size_t size = 0;
    for (value++; (*value != '"') && (size < (TEXT_MAX - 1u)); value++) {
        value += (*value == '\\');
        text[size++] = *value;
    }
    text[size] = 0;
    return text;
}

const char *json_text(const char *object, const char *name)
{
    const char *value = json_member(object, name);
    return (value == NULL) ? "" : json_string(value);
}

long json_number(const char *object, const char *name, long otherwise)
{
    const char *value = json_member(object, name);
    return (value == NULL) ? otherwise : strtol(value, NULL, 10);
}

size_t json_octets(const char *hexadecimal, uint8_t *octets, size_t room)
{
    size_t size = strlen(hexadecimal) / 2u;
    size_t i;
    if (size > room) {
        (void)fprintf(stderr, "%zu octets, and room for %zu\n", size, room);
        exit(1);
    }
    for (i = 0; i < size; i++) {
        char pair[3] = {hexadecimal[2u * i], hexadecimal[(2u * i) + 1u], 0};
        octets[i] = (uint8_t)strtol(pair, NULL, 16);
    }
    return size;
}
