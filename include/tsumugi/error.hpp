// Errors as exceptions, and what all objects of these headers have in common: they own a
// handle of tsumugi.h, and their calls that may sleep keep the exceptions of the caller.
#ifndef TSUMUGI_ERROR_HPP
#define TSUMUGI_ERROR_HPP

#include <tsumugi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tsumugi {

// The category of TSUMUGI_ERROR_* codes.
inline const std::error_category &category() noexcept
{
    struct errors final : std::error_category {
        const char *name() const noexcept override { return "tsumugi"; }
        std::string message(int code) const override { return tsumugi_error_text(code); }
    };
    static const errors all;
    return all;
}

// A call that has failed: its code, and a text with the reason, if it has one, and the
// meaning of the code.
class error : public std::system_error {
public:
    explicit error(int code) : std::system_error(code, category()) {}
    error(int code, const std::string &reason) : std::system_error(code, category(), reason) {}
};

// Throws if a code is one of an error, with the reason that the library has for it.
inline void check(int code)
{
    if (code != TSUMUGI_OK) throw error(code, tsumugi_reason());
}

namespace detail {

// Throws for a call on threads and their synchronization, of whose failures VALUE alone has
// a reason: for the others, the library has the reason of an earlier failure.
inline void check_thread(int code)
{
    if (code == TSUMUGI_OK) return;
    if (code != TSUMUGI_ERROR_VALUE) throw error(code);
    throw error(code, tsumugi_reason());
}

// Throws for a call on a job and its memory, whose failures NULL and FLAGS have no reason.
inline void check_access(int code)
{
    if (code == TSUMUGI_OK) return;
    if (code == TSUMUGI_ERROR_NULL || code == TSUMUGI_ERROR_FLAGS) throw error(code);
    throw error(code, tsumugi_reason());
}

// Whether a call has succeeded within its limit.
inline bool in_time(int code)
{
    if (code == TSUMUGI_ERROR_TIMED_OUT) return false;
    check_thread(code);
    return true;
}

// Whether a call has succeeded without waiting.
inline bool at_once(int code)
{
    if (code == TSUMUGI_ERROR_BUSY) return false;
    check_thread(code);
    return true;
}

inline void must(int code) noexcept
{
    if (code != TSUMUGI_OK) std::terminate();
}

// Ends an object without a word about what has failed: for destructors.
inline void ignore(int) noexcept {}

// The C++ runtime's list of the calling OS thread. <cxxabi.h> declares the function to be
// constant, so that a compiler may call it once for two threads; here it is not.
extern "C" void *tsumugi_exceptions_of_thread() noexcept __asm__("__cxa_get_globals");

// The exceptions that are caught or in flight, of which the C++ runtime has a list for
// each OS thread (Itanium C++ ABI, 2.2.2). A ULT that sleeps in a `catch` block, or in a
// destructor while its stack unwinds, may wake on another OS thread, and other ULTs use the
// list meanwhile: so the ULT takes its part along.
class exceptions {
public:
    exceptions() noexcept
    {
        list *of_thread = here();
        taken_ = *of_thread;
        if (taken_.caught != nullptr || taken_.uncaught != 0) *of_thread = list{};
    }
    exceptions(const exceptions &) = delete;
    exceptions &operator=(const exceptions &) = delete;
    ~exceptions()
    {
        if (taken_.caught != nullptr || taken_.uncaught != 0) *here() = taken_;
    }

private:
    struct list {
        void *caught = nullptr;
        unsigned int uncaught = 0;
    };
    static list *here() noexcept { return static_cast<list *>(tsumugi_exceptions_of_thread()); }
    list taken_;
};

// Calls a function of tsumugi.h that may sleep.
template <class R, class... P, class... A> R sleeping(R (*call)(P...), A... arguments) noexcept
{
    exceptions kept;
    return call(arguments...);
}

// Owns a C object, which `End` ends.
template <class T, void (*End)(T *) noexcept> struct deleter {
    void operator()(T *object) const noexcept { End(object); }
};
template <class T, void (*End)(T *) noexcept>
using owned = std::unique_ptr<T, deleter<T, End>>;

// A function of the program that a function of C calls with arguments of its own, and what
// became of it: no exception passes through C.
template <class F, class... A> class call {
public:
    using result = std::invoke_result_t<F &, A...>;

    template <class G> explicit call(G &&function) : function_(std::forward<G>(function)) {}

    void run(A... arguments) noexcept
    {
        try {
            if constexpr (std::is_void_v<result>)
                function_(arguments...);
            else
                result_.emplace(function_(arguments...));
        } catch (...) {
            thrown_ = std::current_exception();
        }
    }
    // What the function has returned, or throws what it has thrown.
    result end()
    {
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
        if constexpr (!std::is_void_v<result>) return std::move(*result_);
    }
    std::exception_ptr thrown() const noexcept { return thrown_; }

private:
    struct nothing {};
    F function_;
    std::exception_ptr thrown_;
    std::conditional_t<std::is_void_v<result>, nothing, std::optional<result>> result_;
};

inline std::uint64_t limit_of(std::chrono::nanoseconds limit) noexcept
{
    return limit.count() < 0 ? 0 : static_cast<std::uint64_t>(limit.count());
}

// Whether another rank can use the bytes of a T.
template <class T>
constexpr bool is_plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;
// Whether there are atomics of a T.
template <class T>
constexpr bool is_word = std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

// The bytes of `count` values.
template <class T> std::size_t bytes_of(std::size_t count)
{
    static_assert(is_plain<T>, "other ranks get the bytes of a value: T is trivially copyable, "
                               "and no pointer");
    std::size_t bytes;
    if (__builtin_mul_overflow(count, sizeof(T), &bytes))
        throw error(TSUMUGI_ERROR_LENGTH, std::to_string(count) + " values of " +
                                              std::to_string(sizeof(T)) +
                                              " bytes are more than an address space");
    return bytes;
}

// An atomic operation by the functions for 4 and for 8 bytes; returns the old value.
template <class T, class Four, class Eight> T atomic(Four &&four, Eight &&eight)
{
    static_assert(is_word<T>, "an atomic is on an integer of 4 or 8 bytes");
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> old = 0;
    if constexpr (sizeof(T) == 4)
        four(&old);
    else
        eight(&old);
    return static_cast<T>(old);
}
template <class T> constexpr auto bits_of(T value) noexcept
{
    return static_cast<std::make_unsigned_t<T>>(value);
}

} // namespace detail

// The atomic operations on an integer.
enum class atomic_op : int {
    add = TSUMUGI_ATOMIC_ADD,
    bit_and = TSUMUGI_ATOMIC_AND,
    bit_or = TSUMUGI_ATOMIC_OR,
    bit_xor = TSUMUGI_ATOMIC_XOR,
    swap = TSUMUGI_ATOMIC_SWAP
};

} // namespace tsumugi

#endif
