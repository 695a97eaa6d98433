// User-level threads (ULTs), the schedulers that run them, and what a ULT does with itself.
#ifndef TSUMUGI_THREAD_HPP
#define TSUMUGI_THREAD_HPP

#include <tsumugi/error.hpp>

namespace tsumugi {

// The configuration of a scheduler; zero in a member is its default.
struct config : tsumugi_config {
    config() noexcept : tsumugi_config{} { size = sizeof(tsumugi_config); }
};

// Options of a new ULT: `particulars().with_stack(1 << 20).named("reader").pinned_to(0)`.
struct particulars : tsumugi_particulars {
    particulars() noexcept : tsumugi_particulars{} { size = sizeof(tsumugi_particulars); }
    particulars &with_stack(std::size_t bytes) noexcept { return stack_bytes = bytes, *this; }
    // The text lives until the ULT has begun.
    particulars &named(const char *text) noexcept { return name = text, *this; }
    particulars &pinned_to(std::size_t worker) noexcept
    {
        return worker_plus_one = worker + 1, *this;
    }
    // Before other ready ULTs, whenever it becomes ready.
    particulars &urgent() noexcept { return flags |= TSUMUGI_SPAWN_URGENT, *this; }
    // At once; the caller continues later.
    particulars &child_first() noexcept { return flags |= TSUMUGI_SPAWN_CHILD_FIRST, *this; }
    particulars &keep_fp_control() noexcept
    {
        return flags |= TSUMUGI_SPAWN_KEEP_FP_CONTROL, *this;
    }
};

// A user-level thread, which is joined when this ends, as a std::jthread is. What its
// function throws, the join throws again; it is lost if there is no call of `join`.
class ult {
public:
    ult() noexcept = default;

    // Begins to run `function` on the caller's scheduler, or on `scheduler`.
    template <class F, class = std::enable_if_t<std::is_invocable_v<std::decay_t<F> &>>>
    explicit ult(F &&function, const struct tsumugi_scheduler *scheduler = nullptr,
                 const struct tsumugi_particulars *particulars = nullptr)
    {
        auto made = std::make_shared<body<std::decay_t<F>>>(std::forward<F>(function));
        made->self = made;
        int code = detail::sleeping(tsumugi_spawn, scheduler, particulars,
                                    body<std::decay_t<F>>::run, made.get(), &handle_);
        if (code != TSUMUGI_OK) made->self.reset();
        detail::check_thread(code);
        ended_ = std::move(made);
    }

    ult(ult &&other) noexcept { swap(other); }
    ult &operator=(ult &&other) noexcept
    {
        ult ended(std::move(other));
        swap(ended);
        return *this;
    }
    ~ult()
    {
        if (joinable()) detail::must(detail::sleeping(tsumugi_join, handle_, nullptr));
    }

    // Waits until the function has returned; throws what it has thrown. Blocks.
    void join()
    {
        detail::check_thread(
            detail::sleeping(tsumugi_join, std::exchange(handle_, nullptr), nullptr));
        rethrow();
    }
    // Does the same within a time limit; false if that has passed. `is_cancellable`: a
    // cancellation of the caller ends the wait, as an error. Blocks.
    bool try_join_for(std::chrono::nanoseconds limit, bool is_cancellable = false)
    {
        int code = detail::sleeping(tsumugi_join_within, handle_, detail::limit_of(limit),
                                    is_cancellable, nullptr);
        if (!detail::in_time(code)) return false;
        handle_ = nullptr;
        rethrow();
        return true;
    }
    // Lets the ULT run on without this; what its function throws is lost.
    void detach()
    {
        detail::check_thread(tsumugi_detach(std::exchange(handle_, nullptr)));
        ended_.reset();
    }

    void cancel() { detail::check_thread(tsumugi_cancel(handle_)); }
    bool joinable() const noexcept { return handle_ != nullptr; }
    bool is_finished() const noexcept { return joinable() && tsumugi_is_finished(handle_); }
    struct tsumugi_id id() const
    {
        struct tsumugi_id id;
        detail::check_thread(tsumugi_id_of(handle_, &id));
        return id;
    }
    struct tsumugi_ult *get() const noexcept { return handle_; }
    void swap(ult &other) noexcept
    {
        std::swap(handle_, other.handle_);
        std::swap(ended_, other.ended_);
    }

private:
    struct outcome {
        virtual ~outcome() = default;
        virtual void end() = 0;
    };
    // The function is kept by this and by its ULT.
    template <class F> struct body final : outcome {
        template <class G> explicit body(G &&function) : call(std::forward<G>(function)) {}
        void end() override { static_cast<void>(call.end()); }
        static void *run(void *argument) noexcept
        {
            auto kept = std::move(static_cast<body *>(argument)->self);
            kept->call.run();
            return nullptr;
        }
        detail::call<F> call;
        std::shared_ptr<body> self;
    };
    void rethrow() { std::exchange(ended_, nullptr)->end(); }

    struct tsumugi_ult *handle_ = nullptr;
    std::shared_ptr<outcome> ended_;
};

// Workers that run ULTs.
class scheduler {
public:
    // With `config`, or as many workers as the process has cores.
    explicit scheduler(const struct tsumugi_config *config = nullptr)
    {
        struct tsumugi_scheduler *made = nullptr;
        detail::check_thread(tsumugi_scheduler_create(config, &made));
        scheduler_.reset(made);
    }

    // Runs `main` on a ULT, with the calling thread as a worker; returns what it returns,
    // and throws what it throws. Blocks.
    template <class F> std::invoke_result_t<std::decay_t<F> &> run(F &&main)
    {
        using call = detail::call<std::decay_t<F>>;
        call made(std::forward<F>(main));
        auto enter = [](void *made) -> void * {
            static_cast<call *>(made)->run();
            return nullptr;
        };
        detail::check_thread(detail::sleeping(
            tsumugi_scheduler_run, get(), static_cast<void *(*)(void *)>(enter), &made, nullptr));
        return made.end();
    }

    // Starts the workers in the background, until the scheduler ends.
    void start() { detail::check_thread(tsumugi_scheduler_start(get())); }
    std::size_t worker_count() const noexcept { return tsumugi_worker_count(get()); }
    struct tsumugi_scheduler *get() const noexcept { return scheduler_.get(); }

private:
    static void end(struct tsumugi_scheduler *made) noexcept
    {
        detail::exceptions kept;
        tsumugi_scheduler_destroy(made);
    }
    detail::owned<struct tsumugi_scheduler, end> scheduler_;
};

// Makes the calling thread a ULT of a scheduler while this lives, and ends the scheduler
// with it. The thread that ends this must be the one that has made it.
class entered {
public:
    explicit entered(scheduler &into) : into_(into.get())
    {
        detail::check_thread(detail::sleeping(tsumugi_scheduler_enter, into_));
    }
    entered(const entered &) = delete;
    entered &operator=(const entered &) = delete;
    ~entered() { detail::must(detail::sleeping(tsumugi_scheduler_leave, into_)); }

private:
    struct tsumugi_scheduler *into_;
};

// ---- the calling ULT ----------------------------------------------------------------

inline void yield() noexcept { detail::sleeping(tsumugi_yield); }
// Lets `other` run first, if it is ready and in reach.
inline void yield_to(const ult &other)
{
    detail::check_thread(detail::sleeping(tsumugi_yield_to, other.get()));
}
inline void sleep_for(std::chrono::nanoseconds time) noexcept
{
    detail::sleeping(tsumugi_sleep, detail::limit_of(time));
}
// Does the same, and a cancellation of the caller ends the sleep, as an error.
inline void sleep_for_cancellable(std::chrono::nanoseconds time)
{
    detail::in_time(detail::sleeping(tsumugi_sleep_within, detail::limit_of(time), true));
}
// Whether the caller was asked to give up, by `ult::cancel`.
inline bool is_cancelled() noexcept { return tsumugi_is_cancelled(); }
inline struct tsumugi_id self()
{
    struct tsumugi_id id;
    detail::check_thread(tsumugi_self(&id));
    return id;
}
// The worker that the caller is on, which a call that sleeps may change.
inline std::size_t worker_number()
{
    std::size_t number;
    detail::check_thread(tsumugi_worker_number(&number));
    return number;
}

// Sleeps until another thread unparks the caller; may return without a reason. Blocks.
inline void park() noexcept { detail::sleeping(tsumugi_park); }
// Does the same within a time limit; false if that has passed. Blocks.
inline bool park_for(std::chrono::nanoseconds limit, bool is_cancellable = false)
{
    return detail::in_time(
        detail::sleeping(tsumugi_park_within, detail::limit_of(limit), is_cancellable));
}

// The right to unpark the thread that has made this. Any thread may use it.
class unparker {
public:
    unparker()
    {
        struct tsumugi_unparker *made = nullptr;
        detail::check_thread(tsumugi_unparker_create(&made));
        unparker_.reset(made);
    }
    void unpark() const { detail::check_thread(tsumugi_unpark(get())); }
    struct tsumugi_unparker *get() const noexcept { return unparker_.get(); }

private:
    static void end(struct tsumugi_unparker *made) noexcept { tsumugi_unparker_destroy(made); }
    detail::owned<struct tsumugi_unparker, end> unparker_;
};

// Runs `function` on the stack of an OS thread; it must not block by calls of this library.
// Returns what it returns, and throws what it throws.
template <class F> std::invoke_result_t<std::decay_t<F> &> on_os_stack(F &&function)
{
    using call = detail::call<std::decay_t<F>>;
    call made(std::forward<F>(function));
    auto enter = [](void *made) { static_cast<call *>(made)->run(); };
    detail::check_thread(tsumugi_on_os_stack(enter, &made));
    return made.end();
}

// A T for each ULT that uses it, made at its first use and ended with the ULT; that of an OS
// thread that is no ULT lives as long as the process. The destructor of T must not throw.
template <class T> class ult_local {
public:
    ult_local()
    {
        struct tsumugi_key *made = nullptr;
        auto end = [](void *value) { delete static_cast<T *>(value); };
        detail::check_thread(tsumugi_key_create(end, &made));
        key_.reset(made);
    }
    // The caller's value.
    T &operator*() const
    {
        if (void *value = tsumugi_key_get(key_.get())) return *static_cast<T *>(value);
        auto made = std::make_unique<T>();
        detail::check_thread(tsumugi_key_set(key_.get(), made.get()));
        return *made.release();
    }
    T *operator->() const { return &**this; }

private:
    static void end(struct tsumugi_key *made) noexcept { tsumugi_key_destroy(made); }
    detail::owned<struct tsumugi_key, end> key_;
};

// Another scheduler, whose tasks may block in all calls of this library while this lives.
class registration {
public:
    // `wait` has its size, and functions that do not throw.
    explicit registration(const struct tsumugi_wait &wait)
    {
        struct tsumugi_registration *made = nullptr;
        detail::check_thread(tsumugi_wait_register(&wait, &made));
        registration_.reset(made);
    }
    struct tsumugi_registration *get() const noexcept { return registration_.get(); }

private:
    static void end(struct tsumugi_registration *made) noexcept { tsumugi_wait_unregister(made); }
    detail::owned<struct tsumugi_registration, end> registration_;
};

} // namespace tsumugi

#endif
