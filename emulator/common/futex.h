// Sleeps of a thread until another one wakes it. std::atomic::wait() first yields the core several
// times: beside other programs a thread then waits for a turn of theirs each time, and no longer
// counts as one that has slept, which the kernel lets run soon.
//
// Threading: any thread. futex_wait() returns at once if the word has another value, and may return
// without a wake-up.
#pragma once

#include <atomic>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ghostrank {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4);

inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

inline void futex_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace ghostrank
