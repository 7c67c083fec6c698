/* The use case itself, as a function of the application's. */

#include "use_case.h"

#define main use_case
#include USE_CASE
#include "../station.c"
