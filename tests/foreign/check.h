/* Macros that the test programs of tsumugi's own C functions have in common. */
#ifndef CHECK_H
#define CHECK_H

#include "holds.h"
#include "tsumugi.h"

#include <string.h>

/* Checks that the call returns this code. */
#define ANSWERS(code, call)                                                    \
    do {                                                                       \
        int answer = (call);                                                   \
        if (answer != (code)) {                                                \
            fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, \
                    tsumugi_error_text(answer), tsumugi_reason());             \
            abort();                                                           \
        }                                                                      \
    } while (0)

#define OK(call) ANSWERS(TSUMUGI_OK, call)

#endif
