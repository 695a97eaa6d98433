// Checks of the C++ programs.
#ifndef REQUIRE_HPP
#define REQUIRE_HPP

#include <tsumugi.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

#define REQUIRE(what)                                                       \
    do {                                                                    \
        if (!(what)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
            std::abort();                                                   \
        }                                                                   \
    } while (0)

// A call that fails with a code, and with a text that has these words.
#define REFUSES(number, words, call)                                                      \
    do {                                                                                \
        try {                                                                           \
            call;                                                                       \
            std::fprintf(stderr, "%s:%d: no error: %s\n", __FILE__, __LINE__, #call);   \
            std::abort();                                                               \
        } catch (const tsumugi::error &thrown) {                                        \
            if (thrown.code() != std::error_code(number, tsumugi::category()) ||          \
                std::string(thrown.what()).find(words) == std::string::npos) {          \
                std::fprintf(stderr, "%s:%d: %s: code %d: %s\n", __FILE__, __LINE__,    \
                             #call, thrown.code().value(), thrown.what());              \
                std::abort();                                                           \
            }                                                                           \
        }                                                                               \
    } while (0)

#endif
