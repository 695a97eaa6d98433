// Functions of other ranks, called by number, with types.
#ifndef TSUMUGI_REMOTE_HPP
#define TSUMUGI_REMOTE_HPP

#include <tsumugi/job.hpp>

#include <cstring>

namespace tsumugi {

template <class Signature> class remote;

// A function that any rank calls at any rank: `Answer(Question)` or `Answer()`. Each rank
// that is called makes one, with the same types and number; a barrier between that and the
// first call is the program's. The question and the answer travel as bytes. The function
// lives until the job ends; this is a plain value.
template <class Answer, class... Question> class remote<Answer(Question...)> {
    static_assert(sizeof...(Question) <= 1, "one value is asked; several are a struct");
    static_assert((detail::is_plain<Question> && ...), "a question travels as bytes");
    struct nothing {};
    static constexpr bool has_answer = !std::is_void_v<Answer>;
    using answer_type = std::conditional_t<has_answer, Answer, nothing>;
    static_assert(detail::is_plain<answer_type>, "an answer travels as bytes");
    static_assert(sizeof(answer_type) <= TSUMUGI_ANSWER_BYTES_MAX,
                  "an answer has up to 224 bytes");

public:
    // Calls for `number` run `function(question)`, or `function(from, question)` with the
    // rank that calls. What it throws is a failure, of which the caller is told.
    template <class F>
    remote(const job &of, std::uint32_t number, F function, runs where = runs::at_once)
        : remote(of, number)
    {
        auto answer_to = [function = std::move(function)](
                             std::uint32_t from, const void *bytes, std::size_t count,
                             void *answer) mutable -> std::size_t {
            if (count != (sizeof(Question) + ... + 0)) return TSUMUGI_ANSWER_BYTES_MAX + 1;
            if constexpr (sizeof...(Question) == 0)
                return answered(function, from, answer);
            else
                return unpacked<Question...>(function, from, bytes, answer);
        };
        of.handle(number, std::move(answer_to), where);
    }
    // The function of other ranks, without one of this rank.
    remote(const job &of, std::uint32_t number) noexcept : job_(&of), number_(number) {}

    // Calls the function of a rank, and waits for its answer. Blocks.
    Answer operator()(std::uint32_t to, const Question &...question) const
    {
        return value_of(to, [&](const void *bytes, std::size_t count, void *into) {
            return job_->call(to, number_, bytes, count, into, size);
        }, question...);
    }
    // Lets the function of a rank run, without an answer.
    void cast(std::uint32_t to, const Question &...question) const
    {
        job_->cast(to, number_, place_of(question...), (sizeof(Question) + ... + 0));
    }

private:
    static constexpr std::size_t size = has_answer ? sizeof(answer_type) : 0;

    static const void *place_of() noexcept { return ""; }
    template <class Q> static const void *place_of(const Q &question) noexcept
    {
        return &question;
    }
    template <class Q, class F>
    static std::size_t unpacked(F &function, std::uint32_t from, const void *bytes, void *answer)
    {
        std::remove_const_t<Q> question;
        std::memcpy(&question, bytes, sizeof question);
        return answered(function, from, answer, question);
    }
    template <class F, class... Q>
    static std::size_t answered(F &function, std::uint32_t from, void *answer, const Q &...question)
    {
        auto run = [&]() -> decltype(auto) {
            if constexpr (std::is_invocable_v<F &, std::uint32_t, const Q &...> &&
                          !(sizeof...(Q) == 1 && std::is_invocable_v<F &, const Q &...>))
                return function(from, question...);
            else
                return function(question...);
        };
        if constexpr (has_answer) {
            answer_type value = run();
            std::memcpy(answer, &value, sizeof value);
        } else {
            run();
        }
        return size;
    }
    template <class Call>
    Answer value_of(std::uint32_t to, Call &&call, const Question &...question) const
    {
        std::conditional_t<has_answer, answer_type, unsigned char> value;
        std::size_t count = call(place_of(question...), (sizeof(Question) + ... + 0), &value);
        if (count != size)
            throw error(TSUMUGI_ERROR_LENGTH, "the answer of function " +
                                                  std::to_string(number_) + " of rank " +
                                                  std::to_string(to) + " has " +
                                                  std::to_string(count) + " bytes, not " +
                                                  std::to_string(size));
        if constexpr (has_answer) return value;
    }

    const job *job_;
    std::uint32_t number_;
};

} // namespace tsumugi

#endif
