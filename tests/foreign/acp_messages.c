/* ACP's communication library: channels, segmented buffers, workspaces. */
#include "acp_check.h"

static void messages_keep_their_order(void)
{
    int rank = acp_rank(), procs = acp_procs();
    int next = (rank + 1) % procs, before = (rank + procs - 1) % procs;
    enum { MESSAGES = 50, LONG = 1 << 20 };
    acp_ch_t out = acp_create_ch(rank, next), more = acp_create_ch(rank, next);
    acp_ch_t in = acp_create_ch(before, rank), also = acp_create_ch(before, rank);
    CHECK(out != ACP_CH_NULL && in != ACP_CH_NULL && more != ACP_CH_NULL && also != ACP_CH_NULL);
    CHECK(acp_create_ch(rank, rank) == ACP_CH_NULL);
    if (procs > 2) CHECK(acp_create_ch(next, before) == ACP_CH_NULL);
    CHECK(acp_nbrecv_ch(out, &rank, 4) == ACP_REQUEST_NULL);
    CHECK(acp_nbsend_ch(in, &rank, 4) == ACP_REQUEST_NULL);
    int sent[MESSAGES], other[MESSAGES], got[2 * MESSAGES];
    acp_request_t requests[4 * MESSAGES];
    size_t sizes[4 * MESSAGES];
    for (int n = 0; n < MESSAGES; n++) {
        sent[n] = rank * 1000 + n;
        other[n] = -sent[n];
        requests[n] = acp_nbsend_ch(out, &sent[n], sizeof(int));
        requests[MESSAGES + n] = acp_nbsend_ch(more, &other[n], sizeof(int));
        /* The receives of the second channel begin first. */
        requests[2 * MESSAGES + n] = acp_nbrecv_ch(also, &got[MESSAGES + n], sizeof(int));
        requests[3 * MESSAGES + n] = acp_nbrecv_ch(in, &got[n], sizeof(int));
    }
    CHECK(acp_waitall_ch(requests, 4 * MESSAGES, sizes) == 0);
    for (int n = 0; n < MESSAGES; n++) {
        CHECK(got[n] == before * 1000 + n && got[MESSAGES + n] == -got[n]);
        CHECK(sizes[n] == 0 && sizes[2 * MESSAGES + n] == sizeof(int));
    }
    /* A long message, and a message that is too long for its receive. */
    char *large = malloc(LONG), *into = calloc(LONG, 1);
    memset(large, rank + 1, LONG);
    requests[0] = acp_nbsend_ch(out, large, LONG);
    requests[1] = acp_nbsend_ch(out, large, 100);
    requests[2] = acp_nbsend_ch(out, large, 0);
    CHECK(acp_wait_ch(acp_nbrecv_ch(in, into, LONG)) == LONG);
    for (int n = 0; n < LONG; n++) CHECK(into[n] == before + 1);
    memset(into, 0, 100);
    CHECK(acp_wait_ch(acp_nbrecv_ch(in, into, 10)) == 10);
    CHECK(into[9] == before + 1 && into[10] == 0);
    CHECK(acp_wait_ch(acp_nbrecv_ch(in, into, 10)) == 0);
    for (int n = 0; n < 3; n++) CHECK(acp_wait_ch(requests[n]) == 0);
    CHECK(acp_wait_ch(acp_nbfree_ch(out)) == 0);
    CHECK(acp_free_ch(in) == 0 && acp_free_ch(more) == 0 && acp_free_ch(also) == 0);
    CHECK(acp_free_ch(ACP_CH_NULL) == -1 && acp_wait_ch(ACP_REQUEST_NULL) == (size_t)-1);
    free(large);
    free(into);
    acp_sync();
}

static void segments_go_round(void)
{
    enum { SEGMENTS = 4, WORDS = 32, ROUNDS = 40 };
    static uint64_t out[SEGMENTS][WORDS], in[SEGMENTS][WORDS];
    int rank = acp_rank(), procs = acp_procs();
    int next = (rank + 1) % procs, before = (rank + procs - 1) % procs;
    CHECK(acp_create_src_segbuf(rank, out, 8, 1) == ACP_SEGBUF_NULL);
    acp_segbuf_t source = acp_create_src_segbuf(next, out, sizeof out[0], SEGMENTS);
    acp_segbuf_t sink = acp_create_dst_segbuf(before, in, sizeof in[0], SEGMENTS);
    CHECK(source != ACP_SEGBUF_NULL && sink != ACP_SEGBUF_NULL);
    CHECK(acp_isconnected_segbuf(source) == 1 && acp_query_segbuf_head(sink) == -1);
    /* Rank 0 connects its source first, so that the ring of connections can begin. */
    if (rank == 0) CHECK(acp_connect_segbuf(source) == 0);
    CHECK(acp_connect_segbuf(sink) == 0);
    if (rank != 0) CHECK(acp_connect_segbuf(source) == 0);
    CHECK(acp_isconnected_segbuf(source) == 0 && acp_isconnected_segbuf(sink) == 0);
    CHECK(acp_ack_segbuf(sink) == 1 && acp_ready_segbuf(source) == 1);
    uint64_t sent = 0, got = 0;
    while (sent < ROUNDS || got < ROUNDS) {
        if (sent < ROUNDS && acp_isready_segbuf(source) == 0) {
            CHECK(acp_query_segbuf_tail(source) == (int64_t)sent);
            for (int n = 0; n < WORDS; n++) out[sent % SEGMENTS][n] = sent * 100 + (uint64_t)rank;
            CHECK(acp_ack_segbuf(source) == 0);
            sent++;
        }
        if (got < ROUNDS && acp_isacked_segbuf(sink) == 0) {
            CHECK(acp_query_segbuf_head(sink) == (int64_t)got);
            CHECK(acp_query_segbuf_tail(sink) > (int64_t)got);
            for (int n = 0; n < WORDS; n++) {
                CHECK(in[got % SEGMENTS][n] == got * 100 + (uint64_t)before);
            }
            CHECK(acp_ready_segbuf(sink) == 0);
            got++;
        }
    }
    while (acp_query_segbuf_sent(source) < ROUNDS) usleep(100);
    CHECK(acp_query_segbuf_sent(sink) == -1 && acp_isacked_segbuf(sink) == 1);
    CHECK(acp_free_segbuf(source) == 1);
    if (rank == 0) CHECK(acp_disconnect_segbuf(source) == 0);
    CHECK(acp_disconnect_segbuf(sink) == 0);
    if (rank != 0) CHECK(acp_disconnect_segbuf(source) == 0);
    CHECK(acp_free_segbuf(source) == 0 && acp_free_segbuf(sink) == 0);
    acp_sync();
}

static void a_workspace_is_one_row(void)
{
    int rank = acp_rank(), procs = acp_procs();
    enum { BYTES = 1000 };
    CHECK(acp_setparams_ws((size_t)(procs - 1), 300) == 0);
    CHECK(acp_setparams_ws(0, 0) == 1);
    acp_wsd_t space = acp_create_ws(BYTES), other = acp_create_ws(10);
    CHECK(space != ACP_WSD_NULL && other != ACP_WSD_NULL);
    acp_ga_t ga = acp_malloc(BYTES, rank);
    unsigned char *bytes = acp_query_address(ga);
    if (rank == 0) {
        for (int n = 0; n < BYTES; n++) bytes[n] = (unsigned char)n;
        CHECK(acp_write_ws(space, ga, BYTES, 0) == 0);
    }
    acp_sync();
    memset(bytes, 0, BYTES);
    CHECK(acp_read_ws(space, ga, 700, 250) == 0);
    for (int n = 0; n < 700; n++) CHECK(bytes[n] == (unsigned char)(n + 250));
    CHECK(bytes[700] == 0);
    CHECK(acp_read_ws(space, ga, 2, BYTES - 1) == 1);
    CHECK(acp_read_ws(ACP_WSD_NULL, ga, 1, 0) == 1 && acp_write_ws(ACP_WSD_NULL, ga, 1, 0) == 1);
    acp_free(ga);
    acp_sync();
    acp_destroy_ws(space);
    acp_destroy_ws(other);
    acp_sync();
}

int main(int argc, char **argv)
{
    alarm(120);
    CHECK(acp_init(&argc, &argv) == 0);
    messages_keep_their_order();
    segments_go_round();
    a_workspace_is_one_row();
    CHECK(acp_reset(acp_rank()) == 0);
    messages_keep_their_order();
    CHECK(acp_finalize() == 0);
    return 0;
}
