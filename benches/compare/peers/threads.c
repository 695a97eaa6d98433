/* Programs of threads by MassiveThreads' interface: `threads ROW SIZE REPETITIONS`
 * prints the nanoseconds of one thread, of the fastest repetition. The same program runs
 * with MassiveThreads' library and with this project's. */

#include <myth/myth.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

/* Fibonacci numbers, a thread for one of two calls. */
static void *fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    if (n < 2) return (void *)(intptr_t)1;
    void *less;
    myth_thread_t child = myth_create(fib, (void *)(n - 1));
    intptr_t more = (intptr_t)fib((void *)(n - 2));
    myth_join(child, &less);
    /* The number of calls. */
    return (void *)(more + (intptr_t)less + 1);
}

static long run_fib(long n) { return (intptr_t)fib((void *)n); }

/* A tree of threads with a leaf for each number; with a value of a key, or not. */
static myth_key_t key;
static int has_keys;
struct range { long from, to; };

static void *leaves(void *arg)
{
    struct range *range = arg;
    if (range->to - range->from == 1) {
        if (has_keys) {
            myth_setspecific(key, arg);
            if (myth_getspecific(key) != arg) abort();
        }
        return NULL;
    }
    long middle = (range->from + range->to) / 2;
    struct range halves[2] = {{range->from, middle}, {middle, range->to}};
    myth_thread_t child = myth_create(leaves, &halves[0]);
    leaves(&halves[1]);
    myth_join(child, NULL);
    return NULL;
}

static long run_create(long n)
{
    struct range all = {0, n};
    leaves(&all);
    return n;
}

static long run_keys(long n)
{
    has_keys = 1;
    return run_create(n);
}

/* The n queens, a thread for each place. */
struct board { int n, row; unsigned columns, left, right; long threads; };

static void *queens(void *arg)
{
    struct board *board = arg;
    board->threads = 1;
    if (board->row == board->n) return NULL;
    unsigned full = (1u << board->n) - 1;
    unsigned open = ~(board->columns | board->left | board->right) & full;
    struct board next[32];
    myth_thread_t threads[32];
    int count = 0;
    for (; open; open &= open - 1, count++) {
        unsigned place = open & -open;
        next[count] = (struct board){board->n, board->row + 1, board->columns | place,
                                     (board->left | place) << 1, (board->right | place) >> 1, 0};
        threads[count] = myth_create(queens, &next[count]);
    }
    for (int i = 0; i < count; i++) {
        myth_join(threads[i], NULL);
        board->threads += next[i].threads;
    }
    return NULL;
}

static long run_nqueens(long n)
{
    struct board board = {(int)n, 0, 0, 0, 0, 0};
    queens(&board);
    return board.threads;
}

/* An unbalanced tree: a node has eight children or none. */
struct node { uint64_t state; int depth; long nodes; };

static uint64_t mixed(uint64_t x)
{
    for (int i = 0; i < 8; i++) {
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return x;
}

static void *tree(void *arg)
{
    struct node *node = arg;
    int count = node->depth == 0 ? 100 : mixed(node->state) % 1000 < 124 ? 8 : 0;
    node->nodes = 1;
    if (count == 0) return NULL;
    struct node children[count];
    myth_thread_t threads[count];
    for (int i = 0; i < count; i++) {
        children[i] = (struct node){mixed(node->state * 31 + i), node->depth + 1, 0};
        threads[i] = myth_create(tree, &children[i]);
    }
    for (int i = 0; i < count; i++) {
        myth_join(threads[i], NULL);
        node->nodes += children[i].nodes;
    }
    return NULL;
}

static long run_uts(long seed)
{
    struct node root = {(uint64_t)seed, 0, 0};
    tree(&root);
    return root.nodes;
}

int main(int argc, char **argv)
{
    static const struct { const char *name; long (*run)(long); } rows[] = {
        {"fib", run_fib}, {"create", run_create}, {"keys", run_keys},
        {"nqueens", run_nqueens}, {"uts", run_uts},
    };
    if (argc != 4) return 2;
    myth_init();
    myth_key_create(&key, NULL);
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        if (strcmp(rows[row].name, argv[1]) != 0) continue;
        double best = 1e18;
        for (int i = atoi(argv[3]); i > 0; i--) {
            double begin = now();
            long threads = rows[row].run(atol(argv[2]));
            double each = (now() - begin) / threads;
            if (each < best) best = each;
        }
        printf("%.2f\n", best);
        return 0;
    }
    return 2;
}
