// GHOSTRANK_KERNEL marks a function that GCC compiles once per x86-64 level (v4, v3, baseline); the
// loader picks the best one for the processor. Everything the function calls is inlined into it.
// Off under sanitizers, which do not support such functions.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GHOSTRANK_KERNEL \
  __attribute__((flatten, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GHOSTRANK_KERNEL
#endif
