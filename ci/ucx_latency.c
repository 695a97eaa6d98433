/* Measures the latency of a put, a get and a fetch-add of 8 bytes over UCX, one operation
 * after another, and the rate of 64 at a time, as ofi_latency.c does over libfabric:
 *
 *   ucx_latency target|origin FOLDER [OPERATIONS]
 *
 * OPERATIONS is 2000 if not given. A put ends when it is flushed: it is then in the
 * target's memory. The target polls. UCX_TLS and UCX_NET_DEVICES choose the transport and
 * the device. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define BYTES (1 << 21)
#define WINDOW 64

static ucp_worker_h worker;
static ucp_ep_h ep;
static ucp_rkey_h rkey;
static uint64_t place;

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void name_of(char *name, const char *folder, const char *what, int rank)
{
    snprintf(name, 512, "%s/%s%d", folder, what, rank);
}

static void publish(const char *folder, const char *what, int rank, const void *bytes, size_t size)
{
    char draft[512], name[512];
    name_of(draft, folder, "draft", rank);
    name_of(name, folder, what, rank);
    FILE *file = fopen(draft, "w");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) || rename(draft, name)) {
        perror(draft);
        exit(1);
    }
}

static void *find(const char *folder, const char *what, int rank)
{
    static char bytes[3][1 << 16];
    static int count;
    char name[512];
    FILE *file;
    name_of(name, folder, what, rank);
    while (!(file = fopen(name, "r")))
        usleep(1000);
    if (!fread(bytes[count], 1, sizeof bytes[count], file))
        exit(1);
    fclose(file);
    return bytes[count++];
}

/* Returns whether the request has ended, and frees it if so. */
static int has_ended(ucs_status_ptr_t request)
{
    if (request == NULL)
        return 1;
    if (UCS_PTR_IS_ERR(request))
        check(UCS_PTR_STATUS(request), "an operation");
    if (ucp_request_check_status(request) == UCS_INPROGRESS)
        return 0;
    check(ucp_request_check_status(request), "an operation");
    ucp_request_free(request);
    return 1;
}

static void wait_for(ucs_status_ptr_t request)
{
    while (!has_ended(request))
        ucp_worker_progress(worker);
}

static uint64_t value = 7, old[WINDOW];
static const ucp_request_param_t plain;

static ucs_status_ptr_t put(int at)
{
    (void)at;
    return ucp_put_nbx(ep, &value, 8, place, rkey, &plain);
}

static ucs_status_ptr_t get(int at)
{
    return ucp_get_nbx(ep, &old[at], 8, place, rkey, &plain);
}

static ucs_status_ptr_t fetch_add(int at)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_REPLY_BUFFER | UCP_OP_ATTR_FIELD_DATATYPE,
        .reply_buffer = &old[at],
        .datatype = ucp_dt_make_contig(8),
    };
    return ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, &value, 1, place + 8000, rkey, &param);
}

static void measure(const char *what, ucs_status_ptr_t (*post)(int), int flush, int ops)
{
    double *times = malloc(ops * sizeof *times);
    for (int i = -50; i < ops; i++) {
        double start = now();
        wait_for(post(0));
        if (flush)
            wait_for(ucp_ep_flush_nbx(ep, &plain));
        if (i >= 0)
            times[i] = now() - start;
    }
    qsort(times, ops, sizeof *times, ascending);
    printf("ucx %s min %.2f p10 %.2f p50 %.2f\n", what, times[0], times[ops / 10], times[ops / 2]);
    free(times);
    ucs_status_ptr_t under_way[WINDOW] = {0};
    double start = now();
    for (int i = 0; i < ops; i++) {
        wait_for(under_way[i % WINDOW]);
        under_way[i % WINDOW] = post(i % WINDOW);
    }
    for (int i = 0; i < WINDOW; i++)
        wait_for(under_way[i]);
    if (flush)
        wait_for(ucp_ep_flush_nbx(ep, &plain));
    printf("ucx %s-of-%d each %.3f\n", what, WINDOW, (now() - start) / ops);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int target = !strcmp(argv[1], "target"), ops = argc > 3 ? atoi(argv[3]) : 2000;
    const char *folder = argv[2];
    ucp_config_t *config;
    ucp_context_h context;
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64,
    };
    check(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    check(ucp_init(&params, config, &context), "ucp_init");
    ucp_config_release(config);
    ucp_worker_params_t one = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE};
    check(ucp_worker_create(context, &one, &worker), "ucp_worker_create");
    char *memory = aligned_alloc(4096, BYTES);
    memset(memory, 0, BYTES);
    ucp_mem_map_params_t map = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address = memory,
        .length = BYTES,
    };
    ucp_mem_h registered;
    check(ucp_mem_map(context, &map, &registered), "ucp_mem_map");
    void *key;
    size_t bytes;
    check(ucp_rkey_pack(context, registered, &key, &bytes), "ucp_rkey_pack");
    place = (uint64_t)memory;
    publish(folder, "place", target, &place, sizeof place);
    publish(folder, "key", target, key, bytes);
    ucp_address_t *own;
    check(ucp_worker_get_address(worker, &own, &bytes), "ucp_worker_get_address");
    publish(folder, "address", target, own, bytes);
    ucp_ep_params_t to = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address = find(folder, "address", !target),
    };
    check(ucp_ep_create(worker, &to, &ep), "ucp_ep_create");
    char done[512];
    name_of(done, folder, "done", 0);
    if (target) {
        while (access(done, F_OK))
            for (int i = 0; i < 10000; i++)
                ucp_worker_progress(worker);
        return 0;
    }
    check(ucp_ep_rkey_unpack(ep, find(folder, "key", 1), &rkey), "ucp_ep_rkey_unpack");
    memcpy(&place, find(folder, "place", 1), sizeof place);
    measure("put", put, 1, ops);
    measure("get", get, 0, ops);
    measure("fetch-add", fetch_add, 0, ops);
    return !fopen(done, "w");
}
