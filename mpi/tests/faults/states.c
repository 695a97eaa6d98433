/* Calls before the begin and after the end of the job, and ends by MPI_Abort. */
#include "fault.h"
#include <sys/stat.h>
#include <sys/wait.h>
#include <tsumugi.h>

static int value;

static void begin(void) {
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

// 1 ranks, code 16: MPI_Comm_rank: called before MPI_Init (class MPI_ERR_OTHER); the job ends
static void before_init(void) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

// 1 ranks, code 16: rank 0: MPI_Send: called after MPI_Finalize (class MPI_ERR_OTHER); the job ends
static void after_finalize(void) {
    begin();
    MPI_Finalize();
    MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

// 1 ranks, code 16: rank 0: MPI_Init: called for the second time: a process is a rank once (class MPI_ERR_OTHER); the job ends
static void second_init(void) {
    begin();
    MPI_Init(NULL, NULL);
}

// 1 ranks, code 16: rank 0: MPI_Init: called after MPI_Finalize: a process is a rank once (class MPI_ERR_OTHER); the job ends
static void init_after_finalize(void) {
    begin();
    MPI_Finalize();
    MPI_Init(NULL, NULL);
}

// 1 ranks, code 16: rank 0: MPI_Finalize: called after MPI_Finalize (class MPI_ERR_OTHER); the job ends
static void second_finalize(void) {
    begin();
    MPI_Finalize();
    MPI_Finalize();
}

static void *finalize(void *argument) {
    MPI_Finalize();
    return argument;
}

// 1 ranks, code 16: rank 0: MPI_Finalize: called by another thread than MPI_Init (class MPI_ERR_OTHER); the job ends
static void finalize_by_another_thread(void) {
    int level;
    pthread_t thread;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    pthread_create(&thread, NULL, finalize, NULL);
    pthread_join(thread, NULL);
}

// 1 ranks, code 16: rank 0: MPI_Finalize: called by another thread than MPI_Init (class MPI_ERR_OTHER); the job ends
static void finalize_shared_by_another_thread(void) {
    int level;
    pthread_t thread;
    struct tsumugi_job *job;
    tsumugi_start(&job);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    pthread_create(&thread, NULL, finalize, NULL);
    pthread_join(thread, NULL);
}

// 1 ranks, code 16: rank 0: MPI_Finalize: called before MPI_Init (class MPI_ERR_OTHER); the job ends
static void finalize_of_a_session(void) {
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Finalize();
}

// 1 ranks, code 16: rank 0: MPI_Comm_size: called after MPI_Session_finalize (class MPI_ERR_OTHER); the job ends
static void after_session(void) {
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_finalize(&session);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

// 1 ranks, code 1: rank 0: the program exits without MPI_Session_finalize
static void exit_in_a_session(void) {
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    exit(1);
}

static void *end_session(void *session) {
    MPI_Session_finalize(session);
    return NULL;
}

// 1 ranks, code 16: rank 0: MPI_Session_finalize on session ...: called by another thread than MPI_Session_init (class MPI_ERR_OTHER); the job ends
static void session_by_another_thread(void) {
    MPI_Session session;
    pthread_t thread;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    pthread_create(&thread, NULL, end_session, &session);
    pthread_join(thread, NULL);
}

static void *look(void *folder) {
    int flag;
    usleep(100000);
    MPI_Initialized(&flag);
    fprintf(stderr, "initialized %d\n", flag);
    rmdir(folder);
    return NULL;
}

// 2 ranks, code 0: initialized 0
static void look_while_begins(void) {
    int flag;
    char name[64];
    pthread_t thread;
    snprintf(name, sizeof name, "/tmp/tsumugi_begins_%d", (int)getppid());
    if (mkdir(name, 0700) == 0) {
        /* The other rank calls MPI_Init when this one has looked. */
        pthread_create(&thread, NULL, look, name);
        begin();
        pthread_join(thread, NULL);
    } else {
        while (access(name, F_OK) == 0) usleep(1000);
        begin();
    }
    MPI_Initialized(&flag);
    if (!flag) MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Finalize();
}

/* Ends the process, and the job, unless the child has ended as wanted. */
static void child_ends(pid_t child, int wanted) {
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != wanted)
        _exit(77);
}

// 2 ranks, code 0: MPI_Send: called in process ..., which process ... (rank 0) has forked: only that process may call MPI (class MPI_ERR_OTHER); this process ends
//     MPI_Init: called in process ..., which process ... (rank 1) has forked: only that process may call MPI (class MPI_ERR_OTHER); this process ends
//     MPI_Abort: called in process ..., which process ... (rank 1) has forked: only that process may call MPI (class MPI_ERR_OTHER); this process ends
//     MPI_Barrier: called in process ..., which process ... (rank 0) has forked: only that process may call MPI (class MPI_ERR_OTHER); this process ends
static void in_a_fork(void) {
    int flag;
    pid_t child;
    begin();
    if ((child = fork()) == 0) {
        if (rank == 1) {
            if ((child = fork()) == 0) MPI_Abort(MPI_COMM_WORLD, 3);
            child_ends(child, 16);
        }
        if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Init(NULL, NULL);
    }
    child_ends(child, 16);
    if ((child = fork()) == 0) {
        MPI_Initialized(&flag);
        if (flag) _exit(1);
        MPI_Finalized(&flag);
        if (flag) _exit(1);
        if ((child = fork()) == 0) MPI_Barrier(MPI_COMM_WORLD);
        child_ends(child, 16);
        execlp("true", "true", NULL);
    }
    child_ends(child, 0);
    if ((child = fork()) == 0) exit(0);
    child_ends(child, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

// 3 ranks, code 42: rank 1: MPI_Abort(MPI_COMM_WORLD, 42)
//     tsumugi: rank 1 ... 42
static void abort_with_code(void) {
    begin();
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 42);
    MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// 2 ranks, code 1: rank 0: MPI_Abort(MPI_COMM_WORLD, 0)
static void abort_with_zero(void) {
    begin();
    if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    static const struct fault faults[] = {
        FAULT(before_init), FAULT(after_finalize), FAULT(second_init), FAULT(init_after_finalize),
        FAULT(second_finalize), FAULT(finalize_by_another_thread), FAULT(abort_with_code),
        FAULT(abort_with_zero), FAULT(finalize_shared_by_another_thread),
        FAULT(finalize_of_a_session), FAULT(after_session), FAULT(exit_in_a_session),
        FAULT(session_by_another_thread), FAULT(in_a_fork), FAULT(look_while_begins),
    };
    RUN_FAULT(faults);
    return 0;
}
