// An always-on assertion for our own mistakes: aborts with the expression and its file and line.
// Bad input is an error instead (reason_to_refuse() in plan.h).
#pragma once

#include <cstdio>
#include <cstdlib>

#define GHOSTRANK_SWITCH_ASSERT(condition)                                                 \
  do {                                                                                     \
    if (!(condition)) [[unlikely]] {                                                       \
      std::fprintf(stderr, "ghostrank: %s:%d: assertion failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                                            \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)
