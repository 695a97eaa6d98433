// The C++ header without ranks: threads, locks, what threads wait for, and exceptions of
// threads that sleep while they handle them. Prints "all is well".
#include "require.hpp"

#include <atomic>
#include <list>
#include <stdexcept>

using namespace std::chrono_literals;

static void threads(tsumugi::scheduler &scheduler)
{
    REQUIRE(scheduler.worker_count() == 4 && tsumugi::worker_number() < 4);
    // What a ULT throws comes out of its join.
    tsumugi::ult failing([] { throw std::runtime_error("as it should"); });
    try {
        failing.join();
        REQUIRE(!"the join returns");
    } catch (const std::runtime_error &thrown) {
        REQUIRE(std::string(thrown.what()) == "as it should");
    }
    REQUIRE(!failing.joinable());
    REFUSES(TSUMUGI_ERROR_NULL, "NULL", failing.join());
    REFUSES(TSUMUGI_ERROR_NULL, "NULL", failing.detach());

    // Move, swap, and a function that only moves.
    auto value = std::make_unique<int>(3);
    int got = 0;
    tsumugi::ult first([&got, value = std::move(value)] { got = *value; });
    tsumugi::ult second(std::move(first));
    REQUIRE(!first.joinable() && second.joinable());
    first = std::move(second);
    first.join();
    REQUIRE(got == 3);

    // A detached function lives until it has run.
    tsumugi::latch done(1);
    auto shared = std::make_shared<int>(0);
    std::weak_ptr<int> alive = shared;
    tsumugi::ult detached([&done, shared = std::move(shared)] {
        tsumugi::yield();
        *shared = 1;
        done.count_down();
    });
    detached.detach();
    done.wait();
    while (!alive.expired()) tsumugi::yield();

    // Options, a time limit, a cancellation.
    tsumugi::semaphore go(0);
    auto options = tsumugi::particulars().with_stack(128 << 10).named("waits").pinned_to(1);
    options.urgent();
    tsumugi::ult waits(
        [&] {
            REQUIRE(tsumugi::worker_number() == 1);
            go.acquire();
            REQUIRE(tsumugi::worker_number() == 1);
        },
        nullptr, &options);
    REQUIRE(!waits.try_join_for(1ms) && waits.joinable());
    go.release();
    while (!waits.try_join_for(1s)) {
    }
    REQUIRE(!waits.joinable());
    tsumugi::ult gives_up([&] { REQUIRE(!go.try_acquire_for(1h, 1, true)); });
    auto id = gives_up.id(), own = tsumugi::self();
    REQUIRE(id.slot != own.slot || id.generation != own.generation);
    gives_up.cancel();
    REFUSES(TSUMUGI_ERROR_CANCELLED, "cancelled", gives_up.join());
    tsumugi::ult sleeps([] {
        tsumugi::sleep_for_cancellable(1ms);
        tsumugi::sleep_for_cancellable(1h);
    });
    sleeps.cancel();
    REFUSES(TSUMUGI_ERROR_CANCELLED, "cancelled", sleeps.join());
    options.worker_plus_one = 9;
    REFUSES(TSUMUGI_ERROR_WORKER, "worker", tsumugi::ult([] {}, nullptr, &options));

    // Parking, the stack of the OS thread, values of a ULT.
    std::atomic<bool> is_parked{false};
    std::optional<tsumugi::unparker> other;
    tsumugi::ult parks([&] {
        other.emplace();
        is_parked = true;
        tsumugi::park();
        REQUIRE(!tsumugi::park_for(1ms));
    });
    while (!is_parked) tsumugi::yield_to(parks);
    other->unpark();
    parks.join();
    REQUIRE(tsumugi::on_os_stack([] { return 7; }) == 7);
    try {
        tsumugi::on_os_stack([] { throw 8; });
        REQUIRE(!"the call returns");
    } catch (int thrown) {
        REQUIRE(thrown == 8);
    }
    static std::atomic<int> ended{0};
    struct counted {
        int value = 5;
        ~counted() { ended++; }
    };
    tsumugi::ult_local<counted> local;
    for (int i = 0; i < 3; i++)
        tsumugi::ult([&] {
            REQUIRE(local->value == 5);
            local->value = 6;
            tsumugi::yield();
            REQUIRE((*local).value == 6);
        }).join();
    while (ended != 3) tsumugi::yield();
}

static void locks()
{
    tsumugi::mutex mutex;
    std::unique_lock<tsumugi::mutex> lock(mutex);
    tsumugi::ult([&] {
        REQUIRE(!mutex.try_lock() && !mutex.try_lock_for(1ms));
        std::unique_lock<tsumugi::mutex> timed(mutex, 1ms);
        REQUIRE(!timed);
        REQUIRE(!mutex.try_lock_until(std::chrono::steady_clock::now() + 1ms));
    }).join();
    tsumugi::condvar condvar;
    REQUIRE(!condvar.wait_for(lock, 1ms) && lock.owns_lock());
    bool is_set = false;
    REQUIRE(!condvar.wait_for(lock, 1ms, [&] { return is_set; }));
    tsumugi::ult sets([&] {
        std::lock_guard<tsumugi::mutex> inside(mutex);
        is_set = true;
        condvar.notify_one();
    });
    REQUIRE(condvar.wait_for(lock, 1h, [&] { return is_set; }));

    tsumugi::rwlock rwlock;
    {
        std::shared_lock<tsumugi::rwlock> reads(rwlock);
        tsumugi::ult([&] {
            std::shared_lock<tsumugi::rwlock> too(rwlock, 1h);
            REQUIRE(too && !rwlock.try_lock() && !rwlock.try_lock_for(1ms));
        }).join();
    }
    std::unique_lock<tsumugi::rwlock> writes(rwlock);
    tsumugi::ult([&] {
        REQUIRE(!rwlock.try_lock_shared() && !rwlock.try_lock_shared_for(1ms));
    }).join();
}

static void waits()
{
    tsumugi::semaphore permits(2);
    permits.acquire(2);
    REQUIRE(!permits.try_acquire() && !permits.try_acquire_for(1ms));
    permits.release(2);
    REFUSES(TSUMUGI_ERROR_VALUE, "permits", permits.release(SIZE_MAX));
    // A failure without a reason does not show that of the failure before.
    REFUSES(TSUMUGI_ERROR_NOT_LOCKED, "lock",
            tsumugi::check(tsumugi_mutex_unlock(tsumugi::mutex().get())));
    try {
        tsumugi::detail::check_thread(tsumugi_mutex_unlock(tsumugi::mutex().get()));
    } catch (const tsumugi::error &thrown) {
        REQUIRE(std::string(thrown.what()).find("permits") == std::string::npos);
    }

    tsumugi::latch latch(2);
    REQUIRE(!latch.wait_for(1ms));
    REFUSES(TSUMUGI_ERROR_VALUE, "3", latch.count_down(3));
    tsumugi::ult counts([&] { latch.arrive_and_wait(); });
    latch.arrive_and_wait();
    counts.join();

    tsumugi::barrier barrier(3);
    REQUIRE(!barrier.arrive_and_wait_for(1ms));
    std::atomic<int> last{0};
    std::vector<tsumugi::ult> all;
    for (int i = 0; i < 3; i++)
        all.emplace_back([&] {
            for (int round = 0; round < 10; round++) last += barrier.arrive_and_wait();
        });
    for (auto &one : all) one.join();
    REQUIRE(last == 10);

    tsumugi::once once, fails;
    int calls = 0;
    for (int i = 0; i < 2; i++) once.call([&] { calls++; });
    REQUIRE(calls == 1);
    for (int i = 0; i < 2; i++) {
        try {
            fails.call([&] {
                calls++;
                throw std::logic_error("no");
            });
            REQUIRE(!"the call returns");
        } catch (const std::logic_error &) {
        }
    }
    REQUIRE(calls == 2);

    tsumugi::full_empty<double> word, full(1.5);
    REQUIRE(!word.is_full() && full.is_full() && full.read() == 1.5);
    REQUIRE(!word.read_for(1ms) && !word.take_for(1ms) && !word.write_full_for(2, 1ms));
    REQUIRE(!full.write_empty_for(2, 1ms));
    tsumugi::ult writes([&] {
        for (int i = 0; i < 100; i++) word.write_empty(i / 4.0);
    });
    for (int i = 0; i < 100; i++) REQUIRE(word.take() == i / 4.0);
    writes.join();
    full.write_full(3);
    full.empty();
    full.fill();
    REQUIRE(full.take() == 3);
    full.write(4);
    REQUIRE(*full.read_for(1h) == 4);
}

// Yields, so that the ULT wakes on any thread.
static void sleep_now()
{
    for (int i = 0; i < 20; i++) tsumugi::yield();
}

struct sleeps_at_its_end {
    int &ends;
    ~sleeps_at_its_end()
    {
        sleep_now();
        ends++;
    }
};

// ULTs that sleep in a `catch` block and while their stacks unwind, and move to other OS
// threads meanwhile, each with its own exception.
static void exceptions()
{
    std::vector<tsumugi::ult> all;
    for (int number = 0; number < 40; number++)
        all.emplace_back([number] {
            for (int round = 0; round < 20; round++) {
                int ends = 0, caught = 0;
                try {
                    sleeps_at_its_end outer{ends};
                    try {
                        sleeps_at_its_end inner{ends};
                        throw number;
                    } catch (int thrown) {
                        REQUIRE(thrown == number && std::uncaught_exceptions() == 0);
                        sleep_now();
                        try {
                            throw std::to_string(number);
                        } catch (const std::string &second) {
                            sleep_now();
                            REQUIRE(second == std::to_string(number));
                        }
                        sleep_now();
                        throw;
                    }
                } catch (int thrown) {
                    sleep_now();
                    REQUIRE(thrown == number && *static_cast<int *>(&thrown) == number);
                    caught++;
                }
                REQUIRE(ends == 2 && caught == 1 && !std::current_exception());
            }
        });
    for (auto &one : all) one.join();
}

int main()
{
    REQUIRE(tsumugi_version() == TSUMUGI_VERSION);
    tsumugi::config config;
    config.workers = 4;
    tsumugi::scheduler scheduler(&config);
    REQUIRE(scheduler.run([&] {
        threads(scheduler);
        locks();
        waits();
        exceptions();
        return 17;
    }) == 17);
    REFUSES(TSUMUGI_ERROR_ENDED, "ended", scheduler.start());
    tsumugi::scheduler throws;
    try {
        throws.run([] { throw std::runtime_error("out of run"); });
        REQUIRE(!"the run returns");
    } catch (const std::runtime_error &thrown) {
        REQUIRE(std::string(thrown.what()) == "out of run");
    }
    try {
        tsumugi::scheduler inside;
        tsumugi::entered here(inside);
        int done = 0;
        tsumugi::ult([&] { done = 1; }).join();
        REQUIRE(done == 1);
    } catch (const tsumugi::error &thrown) {
        // Under a sanitizer no thread enters.
        REQUIRE(thrown.code().value() == TSUMUGI_ERROR_UNSUPPORTED);
    }
    std::puts("all is well");
}
