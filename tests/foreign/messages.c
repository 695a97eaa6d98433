/* Messages: communicators, blocking and nonblocking calls, probes. */
#include "rank.h"

enum { LONG = 1 << 20, ROUNDS = 50, MANY = 20 };

static struct tsumugi_comm *comm;

static void messages_go_round(void)
{
    static char data[LONG], found[LONG];
    size_t lengths[] = {0, 1, 8, 200, 5000, LONG};
    struct tsumugi_received received;
    for (int n = 0; n < 6; n++) {
        size_t bytes = lengths[n];
        memset(data, n + 1 + (int)rank, sizeof data);
        /* Only one of the ranks sends first; a rank alone would wait for itself. */
        if (size == 1) continue;
        if (rank == 0) OK(tsumugi_send(comm, next, 7, data, bytes));
        OK(tsumugi_recv(comm, before, 7, found, sizeof found, &received));
        CHECK(received.source == before && received.tag == 7 && received.bytes == bytes);
        CHECK(bytes == 0 || found[bytes - 1] == (char)(n + 1 + before));
        if (rank != 0) OK(tsumugi_send(comm, next, 7, data, bytes));
    }
    for (int n = 0; n < 6; n++) {
        size_t bytes = lengths[n];
        OK(tsumugi_send_recv(comm, next, 8, data, bytes, before, 8, found, LONG, &received));
        CHECK(received.bytes == bytes && received.tag == 8);
        OK(tsumugi_send_recv(comm, next, 9, data, bytes, TSUMUGI_ANY_SOURCE, 9, found, LONG, NULL));
    }
}

static void any_source_and_any_tag(void)
{
    uint32_t value;
    struct tsumugi_received received, found;
    if (rank == 0) {
        uint32_t seen = 0;
        for (uint32_t n = 1; n < size; n++) {
            OK(tsumugi_probe(comm, TSUMUGI_ANY_SOURCE, TSUMUGI_ANY_TAG, &found));
            OK(tsumugi_recv(comm, found.source, found.tag, &value, 4, &received));
            CHECK(received.source == value && received.tag == UINT32_MAX - value);
            CHECK(found.source == value && found.bytes == 4);
            seen |= 1u << value;
        }
        CHECK(seen == (1u << size) - 2);
    } else {
        OK(tsumugi_send(comm, 0, UINT32_MAX - rank, &rank, 4));
    }
    OK(tsumugi_barrier(job));
    bool is_there = true;
    OK(tsumugi_try_probe(comm, TSUMUGI_ANY_SOURCE, 4, &is_there, &found));
    CHECK(!is_there);
    OK(tsumugi_send(comm, rank, 3, "self", 5));
    OK(tsumugi_try_probe(comm, rank, 3, &is_there, &found));
    CHECK(is_there && found.source == rank && found.tag == 3 && found.bytes == 5);
    OK(tsumugi_try_probe(comm, rank, 4, &is_there, NULL));
    CHECK(!is_there);
    char text[5];
    OK(tsumugi_recv(comm, rank, TSUMUGI_ANY_TAG, text, sizeof text, NULL));
    CHECK(strcmp(text, "self") == 0);
}

static void a_message_of_unknown_length_is_received(void)
{
    size_t lengths[] = {0, 10, 100000};
    for (int n = 0; n < 3; n++) {
        char *data = tsumugi_malloc(lengths[n]);
        void *found;
        struct tsumugi_request *request;
        struct tsumugi_received received;
        memset(data, n + 1, lengths[n]);
        OK(tsumugi_isend(comm, next, 11, data, lengths[n], &request));
        OK(tsumugi_recv_whole(comm, before, 11, &found, &received));
        CHECK(received.bytes == lengths[n] && received.source == before);
        OK(tsumugi_request_wait(request, NULL));
        CHECK(memcmp(found, data, lengths[n]) == 0);
        tsumugi_free(found);
        tsumugi_free(data);
    }
}

static void requests_end_in_any_order(void)
{
    static uint64_t sent[MANY], came[MANY];
    struct tsumugi_request *requests[2 * MANY + 1] = {NULL};
    struct tsumugi_received received[2 * MANY + 1];
    int codes[2 * MANY + 1];
    memset(codes, 77, sizeof codes);
    for (int n = 0; n < MANY; n++) {
        sent[n] = 100 * rank + n;
        OK(tsumugi_irecv(comm, before, 20 + n, &came[n], 8, &requests[n]));
    }
    for (int n = MANY - 1; n >= 0; n--) {
        OK(tsumugi_isend(comm, next, 20 + n, &sent[n], 8, &requests[MANY + n]));
    }
    OK(tsumugi_request_wait_all(requests, 2 * MANY + 1, received, codes));
    for (int n = 0; n < MANY; n++) {
        CHECK(came[n] == 100 * before + n && requests[n] == NULL && codes[n] == TSUMUGI_OK);
        CHECK(received[n].source == before && received[n].tag == 20u + n && received[n].bytes == 8);
        CHECK(received[MANY + n].source == next && received[MANY + n].bytes == 8);
    }
    CHECK(codes[2 * MANY] == TSUMUGI_OK);
    OK(tsumugi_request_wait_all(requests, 2 * MANY, NULL, NULL));
    OK(tsumugi_request_wait_all(NULL, 0, NULL, NULL));
    /* One by one. */
    for (int n = 0; n < MANY; n++) {
        OK(tsumugi_irecv(comm, before, 50 + n, &came[n], 8, &requests[n]));
        OK(tsumugi_isend(comm, next, 50 + n, &sent[n], 8, &requests[MANY + n]));
    }
    uint64_t ended = 0;
    for (int n = 0; n < 2 * MANY; n++) {
        size_t index = SIZE_MAX;
        OK(tsumugi_request_wait_any(requests, 2 * MANY, &index, received));
        CHECK(index < 2 * MANY && requests[index] == NULL && !(ended >> index & 1));
        ended |= 1ull << index;
    }
    size_t index;
    REFUSES(TSUMUGI_ERROR_NULL, "all 40 entries",
            tsumugi_request_wait_any(requests, 2 * MANY, &index, NULL));
    /* A test, until the message is there. */
    bool is_done = false;
    struct tsumugi_request *request;
    OK(tsumugi_irecv(comm, before, 90, came, 8, &request));
    OK(tsumugi_request_test(request, &is_done, NULL));
    CHECK(!is_done || size == 1 || came[0] == 90);
    uint64_t ninety = 90;
    OK(tsumugi_send(comm, next, 90, &ninety, 8));
    while (!is_done) {
        OK(tsumugi_request_test(request, &is_done, received));
        tsumugi_yield();
    }
    CHECK(came[0] == 90);
    REFUSES(TSUMUGI_ERROR_ENDED, "the request at", tsumugi_request_test(request, &is_done, NULL));
}

static void receives_are_cancelled(void)
{
    uint64_t word;
    struct tsumugi_request *request, *sending;
    OK(tsumugi_irecv(comm, TSUMUGI_ANY_SOURCE, 1000, &word, 8, &request));
    OK(tsumugi_request_cancel(request));
    REFUSES(TSUMUGI_ERROR_CANCELLED, "cancelled", tsumugi_request_wait(request, NULL));
    REFUSES(TSUMUGI_ERROR_ENDED, "the request at", tsumugi_request_wait(request, NULL));
    REFUSES(TSUMUGI_ERROR_ENDED, "the request at", tsumugi_request_cancel(request));
    OK(tsumugi_isend(comm, rank, 1001, &word, 8, &sending));
    REFUSES(TSUMUGI_ERROR_VALUE, "is a send", tsumugi_request_cancel(sending));
    OK(tsumugi_request_wait(sending, NULL));
    OK(tsumugi_recv(comm, rank, 1001, &word, 8, NULL));
}

static void communicators_keep_messages_apart(void)
{
    struct tsumugi_comm *other;
    OK(tsumugi_comm_duplicate(comm, &other));
    uint32_t one = 1, two = 2, value;
    OK(tsumugi_send(comm, next, 5, &one, 4));
    OK(tsumugi_send(other, next, 5, &two, 4));
    OK(tsumugi_recv(other, before, 5, &value, 4, NULL));
    CHECK(value == 2);
    OK(tsumugi_recv(comm, before, 5, &value, 4, NULL));
    CHECK(value == 1);
    OK(tsumugi_comm_close(other));
    REFUSES(TSUMUGI_ERROR_ENDED, "the comm at", tsumugi_send(other, next, 5, &two, 4));
    REFUSES(TSUMUGI_ERROR_ENDED, "the comm at", tsumugi_comm_close(other));
}

static void wrong_values_are_refused(void)
{
    uint32_t value = 1;
    void *data;
    bool is;
    size_t index;
    struct tsumugi_request *request, *none[1] = {NULL};
    struct tsumugi_comm *other;
    struct tsumugi_received received;
    char none_such[32];
    snprintf(none_such, sizeof none_such, "rank %u", size);
    /* Longer than its room: the beginning is there. */
    OK(tsumugi_send(comm, rank, 1, "longer", 7));
    char room[4] = "----";
    REFUSES(TSUMUGI_ERROR_TRUNCATED, "7 bytes", tsumugi_recv(comm, rank, 1, room, 4, &received));
    CHECK(received.bytes == 7 && received.source == rank && memcmp(room, "long", 4) == 0);
    /* Ranks and tags. */
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_send(comm, size, 1, &value, 4));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_recv(comm, size, 1, &value, 4, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, "-5", tsumugi_recv(comm, -5, 1, &value, 4, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "-2", tsumugi_recv(comm, rank, -2, &value, 4, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "4294967296",
            tsumugi_recv(comm, rank, 1ll << 32, &value, 4, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_recv_whole(comm, size, 1, &data, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "-2", tsumugi_recv_whole(comm, rank, -2, &data, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such,
            tsumugi_send_recv(comm, size, 1, &value, 4, rank, 1, room, 4, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such,
            tsumugi_send_recv(comm, rank, 1, &value, 4, size, 1, room, 4, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_isend(comm, size, 1, &value, 4, &request));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_irecv(comm, size, 1, &value, 4, &request));
    REFUSES(TSUMUGI_ERROR_VALUE, "-7", tsumugi_irecv(comm, rank, -7, &value, 4, &request));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_probe(comm, size, 1, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_try_probe(comm, size, 1, &is, NULL));
    /* Pointers. */
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_comm_open(NULL, &other));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_comm_open(job, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "comm", tsumugi_comm_duplicate(NULL, &other));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_comm_duplicate(comm, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "comm", tsumugi_comm_close(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "comm", tsumugi_send(NULL, rank, 1, &value, 4));
    REFUSES(TSUMUGI_ERROR_NULL, "from", tsumugi_send(comm, rank, 1, NULL, 4));
    REFUSES(TSUMUGI_ERROR_NULL, "comm", tsumugi_recv(NULL, rank, 1, &value, 4, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "into", tsumugi_recv(comm, rank, 1, NULL, 4, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "data", tsumugi_recv_whole(comm, rank, 1, NULL, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "into",
            tsumugi_send_recv(comm, rank, 1, &value, 4, rank, 1, NULL, 4, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_isend(comm, rank, 1, &value, 4, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "from", tsumugi_isend(comm, rank, 1, NULL, 4, &request));
    REFUSES(TSUMUGI_ERROR_NULL, "into", tsumugi_irecv(comm, rank, 1, NULL, 4, &request));
    REFUSES(TSUMUGI_ERROR_NULL, "comm", tsumugi_probe(NULL, rank, 1, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "is_there", tsumugi_try_probe(comm, rank, 1, NULL, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "request", tsumugi_request_wait(NULL, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "request", tsumugi_request_test(NULL, &is, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "request", tsumugi_request_cancel(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "requests", tsumugi_request_wait_any(NULL, 1, &index, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "index", tsumugi_request_wait_any(none, 1, NULL, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "requests", tsumugi_request_wait_all(NULL, 1, NULL, NULL));
}

static void play(void)
{
    OK(tsumugi_comm_open(job, &comm));
    messages_go_round();
    OK(tsumugi_barrier(job));
    any_source_and_any_tag();
    a_message_of_unknown_length_is_received();
    requests_end_in_any_order();
    receives_are_cancelled();
    communicators_keep_messages_apart();
    wrong_values_are_refused();
    OK(tsumugi_barrier(job));
    OK(tsumugi_comm_close(comm));
}
