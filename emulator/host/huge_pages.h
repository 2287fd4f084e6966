// Huge pages for long runs in virtual time. The events of many ranks touch memory in no order, and
// with pages of 4 KiB the misses of the TLB take up to a tenth of the time (docs/performance.md).
// That memory is thousands of small pieces, so the kernel is asked for all of it at once.
//
// Results do not depend on it. A real run never asks: threads wait while their memory is moved.
#pragma once

#include <cstddef>
#include <thread>

namespace ghostrank {

struct HugePageCount {
  std::size_t small = 0;  // chunks of 2 MiB, at least half in use, that stay in small pages
  std::size_t huge = 0;   // that are huge pages now
};

// Asks the kernel to make huge pages of this process's anonymous memory where at least half of
// 2 MiB is in use; resident memory may grow by what is not. Does nothing where huge pages are
// turned off (`never`); kernels before Linux 6.1 do it later, in the background. Takes some
// 20 ms for each 10 MiB that is moved; threads that touch it wait. Threading: any.
HugePageCount use_huge_pages();

// Calls use_huge_pages() from a thread of its own while it lives: after four seconds, because a
// short run would not earn its cost, then after 8, 16, ... more. Processes of less than 64 MiB are
// left alone.
class HugePages {
 public:
  HugePages();

 private:
  std::jthread thread_;
};

}  // namespace ghostrank
