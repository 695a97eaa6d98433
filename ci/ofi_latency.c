/* Measures the latency of a put, a get and a fetch-add of 8 bytes directly on libfabric,
 * one operation after another, for comparison with the libfabric backend. Completion
 * level (delivery complete), hints and the first five arguments are those of
 * backends/examples/ofi_latency.rs:
 *
 *   ofi_latency target|origin PROVIDER ADDRESS FOLDER [OPERATIONS [rates]]
 *
 * OPERATIONS is 2000 if not given. With `rates` it also measures 64 operations at a
 * time, and puts and gets of words that are never torn, which are atomics. */
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES (1 << 21)
/* Operations in flight at a time, for rates. */
#define WINDOW 64

struct card {
    uint64_t key, addr;
    char name[256];
};

static struct fid_cq *cq;

static void check(long answer, const char *what)
{
    if (answer < 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror(-answer));
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

static void publish(const char *folder, int rank, const struct card *card)
{
    char draft[512], name[512];
    snprintf(draft, sizeof draft, "%s/draft%d", folder, rank);
    snprintf(name, sizeof name, "%s/card%d", folder, rank);
    FILE *file = fopen(draft, "w");
    if (!file || fwrite(card, sizeof *card, 1, file) != 1 || fclose(file) || rename(draft, name)) {
        perror(draft);
        exit(1);
    }
}

static void find(const char *folder, int rank, struct card *card)
{
    char name[512];
    snprintf(name, sizeof name, "%s/card%d", folder, rank);
    FILE *file;
    while (!(file = fopen(name, "r")))
        usleep(1000);
    if (fread(card, sizeof *card, 1, file) != 1)
        exit(1);
    fclose(file);
}

static void *wait_for(void)
{
    struct fi_cq_msg_entry entry;
    ssize_t answer;
    while ((answer = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
        ;
    check(answer, "fi_cq_read");
    return entry.op_context;
}

#define MEASURE(what, call)                                                       \
    do {                                                                          \
        for (int i = -50; i < ops; i++) {                                         \
            double start = now();                                                 \
            ssize_t answer;                                                       \
            while ((answer = (call)) == -FI_EAGAIN)                               \
                fi_cq_read(cq, NULL, 0);                                          \
            check(answer, what);                                                  \
            wait_for();                                                           \
            if (i >= 0)                                                           \
                times[i] = now() - start;                                         \
        }                                                                         \
        qsort(times, ops, sizeof *times, ascending);                              \
        printf("libfabric %s min %.2f p10 %.2f p50 %.2f\n", what, times[0],       \
               times[ops / 10], times[ops / 2]);                                  \
        if (!rates)                                                               \
            break;                                                                \
        double start = now();                                                     \
        int posted = 0, done = 0;                                                 \
        while (done < ops) {                                                      \
            ssize_t answer = -FI_EAGAIN;                                          \
            if (posted < ops && posted < WINDOW)                                  \
                context = &contexts[posted];                                      \
            else                                                                  \
                done++, context = wait_for();                                     \
            if (posted == ops)                                                    \
                continue;                                                         \
            while ((answer = (call)) == -FI_EAGAIN)                               \
                fi_cq_read(cq, NULL, 0);                                          \
            check(answer, what);                                                  \
            posted++;                                                             \
        }                                                                         \
        printf("libfabric %s-of-%d each %.3f\n", what, WINDOW, (now() - start) / ops); \
        context = contexts;                                                       \
    } while (0)

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    int target = !strcmp(argv[1], "target"), ops = argc > 5 ? atoi(argv[5]) : 2000;
    int rates = argc > 6;
    struct fi_info *hints = fi_allocinfo(), *info;
    hints->caps = FI_RMA | FI_MSG | FI_ATOMIC;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup(argv[2]);
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    check(fi_getinfo(FI_VERSION(1, 17), argv[3], NULL, FI_SOURCE, hints, &info), "fi_getinfo");
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_ep *ep;
    struct fid_mr *mr;
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .size = 512};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    check(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
    check(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
    check(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
    check(fi_ep_bind(ep, &av->fid, 0), "bind");
    check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "bind");
    check(fi_enable(ep), "fi_enable");
    char *memory = aligned_alloc(4096, BYTES);
    memset(memory, 0, BYTES);
    check(fi_mr_reg(domain, memory, BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE,
                    0, 42, 0, &mr, NULL),
          "fi_mr_reg");
    struct card card = {.key = fi_mr_key(mr)}, peer;
    size_t length = sizeof card.name;
    if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
        card.addr = (uint64_t)memory;
    check(fi_getname(&ep->fid, card.name, &length), "fi_getname");
    publish(argv[4], target, &card);
    find(argv[4], !target, &peer);
    fi_addr_t to;
    if (fi_av_insert(av, peer.name, 1, &to, 0, NULL) != 1)
        return 1;
    char done[512];
    snprintf(done, sizeof done, "%s/done", argv[4]);
    if (target) {
        struct fi_cq_msg_entry entry;
        while (access(done, F_OK))
            for (int i = 0; i < 10000; i++)
                fi_cq_read(cq, &entry, 1);
        return 0;
    }
    static struct fi_context2 contexts[WINDOW], *context = contexts;
    void *desc = fi_mr_desc(mr);
    double *times = malloc(ops * sizeof *times);
    uint64_t *one = (uint64_t *)(memory + 64), *old = (uint64_t *)(memory + 128);
    uint64_t word = peer.addr + 8000;
    *one = 1;
    MEASURE("put", fi_write(ep, memory, 8, desc, to, peer.addr, peer.key, context));
    MEASURE("get", fi_read(ep, memory, 8, desc, to, peer.addr, peer.key, context));
    if (rates) {
        MEASURE("word-put", fi_atomic(ep, one, 1, desc, to, word, peer.key, FI_UINT64,
                                      FI_ATOMIC_WRITE, context));
        MEASURE("word-get", fi_fetch_atomic(ep, one, 1, desc, old, desc, to, word, peer.key,
                                            FI_UINT64, FI_ATOMIC_READ, context));
    }
    MEASURE("fetch-add", fi_fetch_atomic(ep, one, 1, desc, old, desc, to, word, peer.key,
                                         FI_UINT64, FI_SUM, context));
    return !fopen(done, "w");
}
