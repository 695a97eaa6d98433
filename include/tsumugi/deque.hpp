// Deques of work that other ranks steal.
#ifndef TSUMUGI_DEQUE_HPP
#define TSUMUGI_DEQUE_HPP

#include <tsumugi/job.hpp>

namespace tsumugi {

// A deque of each rank, with items of T. One thread of a rank at a time pushes and pops;
// any thread steals.
template <class T> class deque {
    static_assert(detail::is_plain<T>, "an item is copied between ranks");

public:
    // With room for at least `capacity` items. Collective.
    deque(const job &of, std::size_t capacity)
    {
        struct tsumugi_deque *made = nullptr;
        check(detail::sleeping(tsumugi_deque_create, of.get(), capacity, sizeof(T), &made));
        deque_.reset(made);
    }

    // Adds an item; false if there is no room.
    bool push(const T &item)
    {
        bool is_added;
        check(tsumugi_deque_push(get(), &item, &is_added));
        return is_added;
    }
    // Takes the newest item of this rank.
    std::optional<T> pop()
    {
        T item;
        bool is_taken;
        check(tsumugi_deque_pop(get(), &item, &is_taken));
        return is_taken ? std::optional<T>(item) : std::nullopt;
    }
    // Takes the oldest item of a rank. Blocks if it is on another node.
    std::optional<T> steal(std::uint32_t rank) const
    {
        T item;
        bool is_taken;
        check(detail::sleeping(tsumugi_deque_steal, get(), rank, &item, &is_taken));
        return is_taken ? std::optional<T>(item) : std::nullopt;
    }
    // The number of this rank's items; thieves may take some at any time.
    std::size_t size() const
    {
        std::size_t count;
        check(tsumugi_deque_count(get(), &count));
        return count;
    }
    struct tsumugi_deque *get() const noexcept { return deque_.get(); }

private:
    static void end(struct tsumugi_deque *made) noexcept
    {
        detail::ignore(tsumugi_deque_destroy(made));
    }
    detail::owned<struct tsumugi_deque, end> deque_;
};

} // namespace tsumugi

#endif
