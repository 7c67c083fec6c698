/** The program of a use case (prime_count.c, word_count.c), which the application calls. */
#ifndef RIOT_USE_CASE_H
#define RIOT_USE_CASE_H

int use_case(int count, char **arguments);

#endif
