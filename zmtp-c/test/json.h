/** As much of JSON as vectors/ has: values are found where they stand in the text. */
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>

/** The text of a file; it stays for the life of the program, which ends here if there is no such file. */
const char *json_file(const char *folder, const char *name);

/** The first element of an array, or null; the next one behind an element. */
const char *json_first(const char *array);
const char *json_next(const char *element);

/** A member's value, or null. */
const char *json_member(const char *object, const char *name);

/** A member's text, "" if it is not there; in memory that the next eight calls leave alone. */
const char *json_text(const char *object, const char *name);
/** The text of an element. */
const char *json_string(const char *value);
long json_number(const char *object, const char *name, long otherwise);

/** Octets of a text in hexadecimal. */
size_t json_octets(const char *hexadecimal, uint8_t *octets, size_t room);

#endif
