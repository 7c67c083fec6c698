/* The use case itself, as a function of the application's. */

int prime_count(int count, char **arguments);

#define main prime_count
#include "../prime_count.c"
#include "../station.c"
