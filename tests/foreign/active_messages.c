/* Active messages: handlers, services, calls and casts. */
#include "rank.h"

#include <stdatomic.h>

enum { REVERSE = 1, COUNT, SLOW, TOO_LONG, EMPTY, NONE = 99, LONG = 100000, CASTS = 200 };

static atomic_uint counted;

static size_t reverse(void *arg, uint32_t from, const void *bytes, size_t count, void *answer)
{
    CHECK(arg == &counted && from == before);
    for (size_t n = 0; n < count && n < TSUMUGI_ANSWER_BYTES_MAX; n++) {
        ((char *)answer)[n] = ((const char *)bytes)[count - 1 - n];
    }
    return count < TSUMUGI_ANSWER_BYTES_MAX ? count : TSUMUGI_ANSWER_BYTES_MAX;
}

static size_t count(void *arg, uint32_t from, const void *bytes, size_t bytes_count, void *answer)
{
    uint32_t value;
    (void)from, (void)answer;
    CHECK(bytes_count == 4);
    memcpy(&value, bytes, 4);
    atomic_fetch_add((atomic_uint *)arg, value);
    return 0;
}

/* A service may block. */
static size_t slow(void *arg, uint32_t from, const void *bytes, size_t count, void *answer)
{
    (void)arg, (void)bytes;
    for (int n = 0; n < 10; n++) tsumugi_yield();
    tsumugi_sleep(20000000);
    memcpy(answer, &from, 4);
    return 4 + (count > 0 ? TSUMUGI_ANSWER_BYTES_MAX : 0);
}

static size_t too_long(void *arg, uint32_t from, const void *bytes, size_t count, void *answer)
{
    (void)arg, (void)from, (void)bytes, (void)count, (void)answer;
    return TSUMUGI_ANSWER_BYTES_MAX + 1;
}

static size_t empty(void *arg, uint32_t from, const void *bytes, size_t count, void *answer)
{
    (void)arg, (void)from, (void)bytes, (void)count, (void)answer;
    return 0;
}

static void play(void)
{
    static char data[LONG], reply[TSUMUGI_ANSWER_BYTES_MAX];
    size_t count_of = 0;
    char none_such[32];
    OK(tsumugi_handler(job, REVERSE, reverse, &counted));
    OK(tsumugi_handler(job, COUNT, count, &counted));
    OK(tsumugi_service(job, SLOW, slow, NULL));
    OK(tsumugi_handler(job, TOO_LONG, too_long, NULL));
    OK(tsumugi_handler(job, EMPTY, empty, NULL));
    OK(tsumugi_barrier(job));
    OK(tsumugi_call(job, next, REVERSE, "abc", 3, reply, sizeof reply, &count_of));
    CHECK(count_of == 3 && memcmp(reply, "cba", 3) == 0);
    for (int n = 0; n < LONG; n++) data[n] = (char)(n % 101);
    OK(tsumugi_call(job, next, REVERSE, data, LONG, reply, sizeof reply, &count_of));
    CHECK(count_of == sizeof reply && reply[0] == data[LONG - 1] && reply[9] == data[LONG - 10]);
    OK(tsumugi_call(job, next, EMPTY, NULL, 0, NULL, 0, NULL));
    uint32_t from = 0, one = 1;
    OK(tsumugi_call(job, next, SLOW, NULL, 0, &from, 4, NULL));
    CHECK(from == rank);
    for (int n = 0; n < CASTS; n++) OK(tsumugi_cast(job, next, COUNT, &one, 4));
    /* Handlers start in the order of the messages, so the casts have run by the answer. */
    OK(tsumugi_call_within(job, next, COUNT, &one, 4, TSUMUGI_FOREVER, NULL, 0, NULL));
    OK(tsumugi_barrier(job));
    CHECK(atomic_load(&counted) == CASTS + 1);
    /* What is wrong. */
    snprintf(none_such, sizeof none_such, "rank %u", size);
    REFUSES(TSUMUGI_ERROR_TRUNCATED, "3 bytes",
            tsumugi_call(job, next, REVERSE, "abc", 3, reply, 2, &count_of));
    CHECK(count_of == 3 && memcmp(reply, "cb", 2) == 0);
    REFUSES(TSUMUGI_ERROR_TIMED_OUT, "",
            tsumugi_call_within(job, next, SLOW, NULL, 0, 1000000, &from, 4, NULL));
    REFUSES(TSUMUGI_ERROR_FAILED, "", tsumugi_call(job, next, SLOW, &one, 4, &from, 4, NULL));
    REFUSES(TSUMUGI_ERROR_FAILED, "", tsumugi_call(job, next, TOO_LONG, NULL, 0, NULL, 0, NULL));
    REFUSES(TSUMUGI_ERROR_HANDLER, "99", tsumugi_call(job, next, NONE, NULL, 0, NULL, 0, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_call(job, size, EMPTY, NULL, 0, NULL, 0, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_cast(job, size, EMPTY, NULL, 0));
    char *much = tsumugi_calloc(1, 1 << 20);
    REFUSES(TSUMUGI_ERROR_LENGTH, "1048576",
            tsumugi_call(job, next, EMPTY, much, 1 << 20, NULL, 0, NULL));
    tsumugi_free(much);
    size_t lengths[] = {(size_t)1 << 40, SIZE_MAX / 2, SIZE_MAX};
    for (int n = 0; n < 3; n++) {
        REFUSES(TSUMUGI_ERROR_LENGTH, "", tsumugi_call(job, next, EMPTY, &one, lengths[n], NULL, 0, NULL));
        REFUSES(TSUMUGI_ERROR_LENGTH, "", tsumugi_cast(job, next, EMPTY, &one, lengths[n]));
    }
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_call(NULL, 0, EMPTY, NULL, 0, NULL, 0, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "from", tsumugi_call(job, next, EMPTY, NULL, 4, NULL, 0, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "answer", tsumugi_call(job, next, EMPTY, NULL, 0, NULL, 4, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_cast(NULL, 0, EMPTY, NULL, 0));
    REFUSES(TSUMUGI_ERROR_NULL, "from", tsumugi_cast(job, next, EMPTY, NULL, 1));
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_handler(NULL, 1, empty, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "function", tsumugi_handler(job, 1, NULL, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_service(NULL, 1, empty, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "function", tsumugi_service(job, 1, NULL, NULL));
    OK(tsumugi_barrier(job));
}
