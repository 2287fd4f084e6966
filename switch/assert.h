// An always-on assertion for our own mistakes, for all folders: prints the expression, its file and
// line, and aborts. Bad input is an error instead.
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
