// Marks a function whose loops are compiled once per instruction set of x86-64, the best that the
// processor has being chosen when the program starts; what it calls is made part of it. Sanitizers
// do not know such functions.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GHOSTRANK_KERNEL \
  __attribute__((flatten, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GHOSTRANK_KERNEL
#endif
