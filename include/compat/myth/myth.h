/* The name under which programs of MassiveThreads include their header. */
#include "../myth.h"
