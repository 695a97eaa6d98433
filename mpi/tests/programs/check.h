/* What the programs of this folder share. A program has a function `program`; `main` starts
 * and ends the job around it, and rank 0 prints what all ranks have said, in the order of
 * the ranks, so that the output does not depend on which rank is faster. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static int rank, size;
static char said[1 << 16];
static size_t said_length;

/* Adds to the text of this rank. */
static inline void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    said_length += vsnprintf(said + said_length, sizeof said - said_length, format, arguments);
    va_end(arguments);
    if (said_length >= sizeof said) {
        fprintf(stderr, "rank %d says too much\n", rank);
        exit(3);
    }
}

static inline void ints(const char *what, const int *values, int count) {
    say("%s:", what);
    for (int i = 0; i < count; i++) say(" %d", values[i]);
    say("\n");
}

static inline void doubles(const char *what, const double *values, int count) {
    say("%s:", what);
    for (int i = 0; i < count; i++) say(" %g", values[i]);
    say("\n");
}

static inline void bytes(const char *what, const void *values, int count) {
    say("%s:", what);
    for (int i = 0; i < count; i++) say(" %02x", ((const unsigned char *)values)[i]);
    say("\n");
}

/* Fills with from, from + 1, ... */
static inline void fill(int *values, int count, int from) {
    for (int i = 0; i < count; i++) values[i] = from + i;
}

/* The constant of a rank or tag by name, because its value says nothing to a reader. */
static inline void number(int value) {
    if (value == MPI_ANY_SOURCE) say("any source");
    else if (value == MPI_ANY_TAG) say("any tag");
    else if (value == MPI_PROC_NULL) say("no process");
    else if (value == MPI_UNDEFINED) say("undefined");
    else say("%d", value);
}

static inline void named(const char *what, int value) {
    say("%s: ", what);
    number(value);
    say("\n");
}

/* Source, tag, and the count of this datatype. */
static inline void status_of(const char *what, const MPI_Status *status, MPI_Datatype datatype) {
    int count;
    MPI_Get_count(status, datatype, &count);
    say("%s: from ", what);
    number(status->MPI_SOURCE);
    say(", tag ");
    number(status->MPI_TAG);
    say(", count ");
    number(count);
    say("\n");
}

#define CLASS(name) if (class == MPI_##name) return #name

static inline const char *class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    CLASS(SUCCESS);
    CLASS(ERR_BUFFER);
    CLASS(ERR_COUNT);
    CLASS(ERR_TYPE);
    CLASS(ERR_TAG);
    CLASS(ERR_COMM);
    CLASS(ERR_RANK);
    CLASS(ERR_REQUEST);
    CLASS(ERR_ROOT);
    CLASS(ERR_GROUP);
    CLASS(ERR_OP);
    CLASS(ERR_TOPOLOGY);
    CLASS(ERR_DIMS);
    CLASS(ERR_ARG);
    CLASS(ERR_UNKNOWN);
    CLASS(ERR_TRUNCATE);
    CLASS(ERR_OTHER);
    CLASS(ERR_INTERN);
    CLASS(ERR_PENDING);
    CLASS(ERR_IN_STATUS);
    CLASS(ERR_INFO);
    CLASS(ERR_INFO_KEY);
    CLASS(ERR_INFO_VALUE);
    CLASS(ERR_INFO_NOKEY);
    CLASS(ERR_KEYVAL);
    CLASS(ERR_NO_MEM);
    CLASS(ERR_ERRHANDLER);
    CLASS(ERR_UNSUPPORTED_OPERATION);
    return class > MPI_ERR_LASTCODE ? "a class of the program" : "another class";
}

/* Says the class of the code that a call returns. */
static inline void result(const char *what, int code) {
    say("%s: %s\n", what, class_of(code));
}

static inline void errors_return(void) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

static inline void print_text(int of, char *text) {
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        printf("%d: %s\n", of, line);
    }
}

/* Prints the texts of all ranks, by rank 0. */
static inline void print_all(void) {
    // No rank sends its text while another still receives messages of any rank.
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) {
        MPI_Send(said, (int)said_length + 1, MPI_CHAR, 0, 32767, MPI_COMM_WORLD);
        return;
    }
    print_text(0, said);
    for (int other = 1; other < size; other++) {
        MPI_Recv(said, sizeof said, MPI_CHAR, other, 32767, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        print_text(other, said);
    }
    fflush(stdout);
}

#ifndef OWN_MAIN
static void program(void);

int main(int argc, char **argv) {
#ifdef WITH_THREADS
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
#else
    MPI_Init(&argc, &argv);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    program();
    print_all();
    MPI_Finalize();
    return 0;
}
#endif

#endif
