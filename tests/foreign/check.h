/* Macros that the test programs of tsumugi's own C functions have in common. */
#ifndef CHECK_H
#define CHECK_H

#include "tsumugi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
            abort();                                                           \
        }                                                                      \
    } while (0)

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
