// GHOSTRANK_KERNEL: a function of plain loops, which the compiler vectorises once per instruction
// set; at program start the loader picks the version that the processor supports.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GHOSTRANK_KERNEL \
  __attribute__((optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GHOSTRANK_KERNEL
#endif
