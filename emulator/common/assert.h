// An always-on assertion against mistakes of our own: prints the expression, file and line, and
// aborts.
#pragma once

#include <cstdio>
#include <cstdlib>

#define GHOSTRANK_ASSERT(condition)                                                        \
  do {                                                                                     \
    if (!(condition)) [[unlikely]] {                                                       \
      std::fprintf(stderr, "ghostrank: %s:%d: assertion failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                                            \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)
