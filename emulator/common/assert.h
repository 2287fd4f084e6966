// We are wrong: an always-on assertion that aborts with the expression and its place.
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
