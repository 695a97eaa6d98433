/* Ranks: 1. Each datatype has its length in the external representation, and its values come
 * back. */
#include "check.h"
#include <float.h>
#include <limits.h>
#include <math.h>

#define TYPE(name) {#name, name}

static const struct {
    const char *name;
    MPI_Datatype type;
} types[] = {
    TYPE(MPI_AINT), TYPE(MPI_COUNT), TYPE(MPI_OFFSET), TYPE(MPI_PACKED), TYPE(MPI_SHORT),
    TYPE(MPI_INT), TYPE(MPI_LONG), TYPE(MPI_LONG_LONG_INT), TYPE(MPI_UNSIGNED_SHORT),
    TYPE(MPI_UNSIGNED), TYPE(MPI_UNSIGNED_LONG), TYPE(MPI_UNSIGNED_LONG_LONG), TYPE(MPI_FLOAT),
    TYPE(MPI_C_FLOAT_COMPLEX), TYPE(MPI_CXX_FLOAT_COMPLEX), TYPE(MPI_DOUBLE),
    TYPE(MPI_C_DOUBLE_COMPLEX), TYPE(MPI_CXX_DOUBLE_COMPLEX), TYPE(MPI_LOGICAL),
    TYPE(MPI_INTEGER), TYPE(MPI_REAL), TYPE(MPI_COMPLEX), TYPE(MPI_DOUBLE_PRECISION),
    TYPE(MPI_DOUBLE_COMPLEX), TYPE(MPI_CHARACTER), TYPE(MPI_C_BOOL), TYPE(MPI_CXX_BOOL),
    TYPE(MPI_INT8_T), TYPE(MPI_UINT8_T), TYPE(MPI_CHAR), TYPE(MPI_SIGNED_CHAR),
    TYPE(MPI_UNSIGNED_CHAR), TYPE(MPI_BYTE), TYPE(MPI_INT16_T), TYPE(MPI_UINT16_T),
    TYPE(MPI_INT32_T), TYPE(MPI_UINT32_T), TYPE(MPI_INT64_T), TYPE(MPI_UINT64_T),
    TYPE(MPI_INTEGER1), TYPE(MPI_INTEGER2), TYPE(MPI_INTEGER4), TYPE(MPI_INTEGER8),
    TYPE(MPI_INTEGER16), TYPE(MPI_REAL4), TYPE(MPI_REAL8), TYPE(MPI_REAL16),
    TYPE(MPI_COMPLEX8), TYPE(MPI_COMPLEX16), TYPE(MPI_COMPLEX32),
};

static char buffer[400];

/* Packs elements, says the bytes, and unpacks them. */
static void there_and_back(const char *name, const void *from, int count, MPI_Datatype type,
                           void *back) {
    MPI_Aint room, position = 3;
    MPI_Pack_external_size("external32", count, type, &room);
    MPI_Pack_external("external32", from, count, type, buffer, sizeof buffer, &position);
    say("%s: room %ld, position %ld\n", name, (long)room, (long)position);
    bytes("packed", buffer + 3, position - 3);
    position = 3;
    MPI_Unpack_external("external32", buffer, sizeof buffer, &position, back, count, type);
    say("position %ld\n", (long)position);
}

static void program(void) {
    for (int i = 0; i < LENGTH(types); i++) {
        unsigned char from[32], back[32] = {0};
        int length;
        for (int j = 0; j < 32; j++) from[j] = 0xe0 - 3 * j;
        if (types[i].type == MPI_C_BOOL || types[i].type == MPI_CXX_BOOL) from[0] = 1;
        there_and_back(types[i].name, from, 1, types[i].type, back);
        MPI_Type_size(types[i].type, &length);
        bytes("back", back, length);
    }
    long numbers[] = {1, -1, LONG_MAX, LONG_MIN + 7, 0x123456789abcdef}, back[5];
    there_and_back("signed", numbers, 5, MPI_LONG, back);
    for (int i = 0; i < 5; i++) say(" %ld", back[i]);
    there_and_back("\nunsigned", numbers, 5, MPI_UNSIGNED_LONG, back);
    for (int i = 0; i < 5; i++) say(" %ld", back[i]);
    say("\n");
    long double values[] = {1, -2.25L, 0, 1 / 3.0L, HUGE_VALL, LDBL_MIN, LDBL_MAX, 4e-4950L}, read[8];
    there_and_back("long double", values, 8, MPI_LONG_DOUBLE, read);
    for (int i = 0; i < 8; i++) say(" %La", read[i]);
    there_and_back("\ncomplex", values, 2, MPI_C_LONG_DOUBLE_COMPLEX, read);
    for (int i = 0; i < 4; i++) say(" %La", read[i]);
    say("\n");
    // More digits than a long double has.
    MPI_Aint position = 0;
    memset(buffer, 0xf7, 16);
    buffer[0] = 0x40;
    MPI_Unpack_external("external32", buffer, 16, &position, read, 1, MPI_LONG_DOUBLE);
    say("%La\n", read[0]);
    MPI_Datatype every_second;
    MPI_Type_vector(3, 1, 2, MPI_LONG, &every_second);
    MPI_Type_commit(&every_second);
    memset(back, 0, sizeof back);
    there_and_back("every second", numbers, 1, every_second, back);
    for (int i = 0; i < 5; i++) say(" %ld", back[i]);
    say("\n");
    MPI_Type_free(&every_second);
}
