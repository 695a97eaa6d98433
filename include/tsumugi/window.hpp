// Windows: an array of each rank, with puts, gets and atomics, which fences, epochs or locks
// order. The guards here end what they have begun, and are silent if that fails, for a
// destructor does not throw: a program that needs to know calls `release`, `wait` or
// `complete`.
#ifndef TSUMUGI_WINDOW_HPP
#define TSUMUGI_WINDOW_HPP

#include <tsumugi/job.hpp>

#include <vector>

namespace tsumugi {

// Whether a hold is alone or together with other shared ones.
enum class sharing : int { shared = TSUMUGI_SHARED, exclusive = TSUMUGI_EXCLUSIVE };

// The locks of a window.
enum class window_locks : int {
    by_default = TSUMUGI_WINDOW_DEFAULT,
    each = TSUMUGI_WINDOW_EACH,
    tree = TSUMUGI_WINDOW_TREE,
    global = TSUMUGI_WINDOW_GLOBAL,
    two_level = TSUMUGI_WINDOW_TWO_LEVEL
};

// A lock on one target of a window, or on all. Its end flushes the puts to the targets.
class hold {
public:
    hold() noexcept = default;

    // Locks one more target. Ranks that take several take them in the same order, or they
    // deadlock. Blocks.
    hold lock(std::uint32_t target, sharing mode = sharing::exclusive) const
    {
        struct tsumugi_hold *made = nullptr;
        check(detail::sleeping(tsumugi_hold_lock, get(), target, static_cast<int>(mode), &made));
        return hold(made);
    }
    // Flushes, and gives the lock back, also if a put has failed, which is thrown. Blocks.
    void release() { check(detail::sleeping(tsumugi_hold_release, hold_.release())); }
    explicit operator bool() const noexcept { return hold_ != nullptr; }
    struct tsumugi_hold *get() const noexcept { return hold_.get(); }

private:
    template <class T> friend class window;
    explicit hold(struct tsumugi_hold *made) noexcept : hold_(made) {}
    static void end(struct tsumugi_hold *made) noexcept
    {
        detail::ignore(detail::sleeping(tsumugi_hold_release, made));
    }
    detail::owned<struct tsumugi_hold, end> hold_;
};

// An access epoch: the memory of some ranks is open to this rank, until it completes.
class epoch {
public:
    epoch() noexcept = default;

    // Waits until the puts have landed, and tells the targets. Blocks.
    void complete() { check(detail::sleeping(tsumugi_epoch_complete, epoch_.release())); }
    explicit operator bool() const noexcept { return epoch_ != nullptr; }
    struct tsumugi_epoch *get() const noexcept { return epoch_.get(); }

private:
    template <class T> friend class window;
    explicit epoch(struct tsumugi_epoch *made) noexcept : epoch_(made) {}
    static void end(struct tsumugi_epoch *made) noexcept
    {
        detail::ignore(detail::sleeping(tsumugi_epoch_complete, made));
    }
    detail::owned<struct tsumugi_epoch, end> epoch_;
};

// An exposure epoch: this rank's memory is open to some ranks, until they have completed.
class exposure {
public:
    exposure() noexcept = default;

    // Waits until all origins have completed: their puts have landed. Blocks.
    void wait() { check(detail::sleeping(tsumugi_exposure_wait, exposure_.release())); }
    // Whether they have; `wait` still ends the exposure.
    bool test() const
    {
        bool is_over = false;
        check(tsumugi_exposure_test(get(), &is_over));
        return is_over;
    }
    explicit operator bool() const noexcept { return exposure_ != nullptr; }
    struct tsumugi_exposure *get() const noexcept { return exposure_.get(); }

private:
    template <class T> friend class window;
    explicit exposure(struct tsumugi_exposure *made) noexcept : exposure_(made) {}
    static void end(struct tsumugi_exposure *made) noexcept
    {
        detail::ignore(detail::sleeping(tsumugi_exposure_wait, made));
    }
    detail::owned<struct tsumugi_exposure, end> exposure_;
};

// An array of values of T on every rank, zero at first, of the same length. Holds and epochs
// end before their window.
template <class T> class window {
public:
    // Collective, with the same `count`.
    window(const job &of, std::size_t count, window_locks locks = window_locks::by_default)
        : count_(count)
    {
        struct tsumugi_window *made = nullptr;
        check(detail::sleeping(tsumugi_window_create, of.get(), detail::bytes_of<T>(count),
                               static_cast<int>(locks), &made));
        window_.reset(made);
    }

    // This rank's own values, which other ranks may change at any time.
    T *data() const
    {
        void *own = nullptr;
        check(tsumugi_window_memory(get(), &own));
        return static_cast<T *>(own);
    }
    std::size_t size() const noexcept { return window_ == nullptr ? 0 : count_; }

    // A put has landed after the next flush, fence, or end of its epoch or hold.
    void put(std::uint32_t target, std::size_t index, const T *from, std::size_t count) const
    {
        check(detail::sleeping(tsumugi_window_put, get(), target, place(index), from,
                               detail::bytes_of<T>(count)));
    }
    void put(std::uint32_t target, std::size_t index, const T &value) const
    {
        put(target, index, &value, 1);
    }
    void get(std::uint32_t target, std::size_t index, T *into, std::size_t count) const
    {
        check(detail::sleeping(tsumugi_window_get, get(), target, place(index), into,
                               detail::bytes_of<T>(count)));
    }
    T get(std::uint32_t target, std::size_t index) const
    {
        T value;
        get(target, index, &value, 1);
        return value;
    }

    // The atomics return the old value, and are complete when they return.
    T fetch_add(std::uint32_t target, std::size_t index, T value) const
    {
        return atomic(atomic_op::add, target, index, value);
    }
    T exchange(std::uint32_t target, std::size_t index, T value) const
    {
        return atomic(atomic_op::swap, target, index, value);
    }
    T atomic(atomic_op what, std::uint32_t target, std::size_t index, T operand) const
    {
        std::size_t at = place(index);
        auto by = [&](auto function) {
            return [this, function, what, target, at, operand](auto *old) {
                check(detail::sleeping(function, get(), static_cast<int>(what), target, at,
                                       detail::bits_of(operand), old));
            };
        };
        return detail::atomic<T>(by(tsumugi_window_atomic4), by(tsumugi_window_atomic8));
    }
    T compare_exchange(std::uint32_t target, std::size_t index, T expected, T desired) const
    {
        std::size_t at = place(index);
        auto by = [&](auto function) {
            return [this, function, target, at, expected, desired](auto *old) {
                check(detail::sleeping(function, get(), target, at, detail::bits_of(expected),
                                       detail::bits_of(desired), old));
            };
        };
        return detail::atomic<T>(by(tsumugi_window_compare_swap4),
                                 by(tsumugi_window_compare_swap8));
    }

    // Waits until all puts of any rank before its fence have landed. Collective.
    void fence() const { check(detail::sleeping(tsumugi_window_fence, get())); }
    // Waits until this rank's puts to a target, or to all, have landed. Blocks.
    void flush(std::uint32_t target) const
    {
        check(detail::sleeping(tsumugi_window_flush, get(), target));
    }
    void flush() const { check(detail::sleeping(tsumugi_window_flush_all, get())); }

    // Locks a target, or all of them, shared with other holders. Blocks.
    hold lock(std::uint32_t target, sharing mode = sharing::exclusive) const
    {
        struct tsumugi_hold *made = nullptr;
        check(detail::sleeping(tsumugi_window_lock, get(), target, static_cast<int>(mode),
                               &made));
        return hold(made);
    }
    hold lock_all() const
    {
        struct tsumugi_hold *made = nullptr;
        check(detail::sleeping(tsumugi_window_lock_all, get(), &made));
        return hold(made);
    }
    // A hold of all targets without a lock, for a program without conflicting accesses.
    hold unchecked() const
    {
        struct tsumugi_hold *made = nullptr;
        check(tsumugi_window_unchecked(get(), &made));
        return hold(made);
    }

    // Opens this rank's memory to some ranks, each of which must call `start`.
    exposure post(const std::vector<std::uint32_t> &origins) const
    {
        struct tsumugi_exposure *made = nullptr;
        check(detail::sleeping(tsumugi_window_post, get(), origins.data(), origins.size(),
                               &made));
        return exposure(made);
    }
    // Waits until each of some ranks has opened its memory to this one. Blocks.
    epoch start(const std::vector<std::uint32_t> &targets) const
    {
        struct tsumugi_epoch *made = nullptr;
        check(detail::sleeping(tsumugi_window_start, get(), targets.data(), targets.size(),
                               &made));
        return epoch(made);
    }
    struct tsumugi_window *get() const noexcept { return window_.get(); }

private:
    static std::size_t place(std::size_t index) { return detail::bytes_of<T>(index); }
    static void end(struct tsumugi_window *made) noexcept
    {
        detail::ignore(tsumugi_window_destroy(made));
    }
    detail::owned<struct tsumugi_window, end> window_;
    std::size_t count_;
};

} // namespace tsumugi

#endif
