#include "emulator/host/huge_pages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

constexpr std::size_t kChunk = 2 << 20, kChunks = 16, kBytes = kChunks * kChunk;

struct Unmap {
  void operator()(std::byte* memory) const { munmap(memory, kBytes); }
};
using MappedMemory = std::unique_ptr<std::byte, Unmap>;

MappedMemory map() {
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return MappedMemory(memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory));
}

std::byte value_at(std::size_t i) { return static_cast<std::byte>(i / 64 * 31); }

// Huge pages of this process, in KiB.
std::uint64_t huge_kib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    std::uint64_t kib = 0;
    if (word == "AnonHugePages:" && rollup >> kib) return kib;
  }
  return 0;
}

// Pages of 4 KiB.
std::size_t resident_pages(const MappedMemory& memory) {
  std::vector<unsigned char> pages(kBytes / 4096);
  if (mincore(memory.get(), kBytes, pages.data()) != 0) return pages.size();
  return static_cast<std::size_t>(std::ranges::count_if(pages, [](auto p) { return p & 1; }));
}

bool kernel_collapses() {
  utsname name{};
  if (uname(&name) != 0) return false;
  int major = 0, minor = 0;
  if (std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
  std::string mode;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), mode);
  return std::pair(major, minor) >= std::pair(6, 1) && !mode.empty() &&
         mode.find("[never]") == std::string::npos;
}

TEST(HugePages, HoldWhatSmallOnesHeld) {
  if (!kernel_collapses()) GTEST_SKIP() << "no huge pages, or a kernel before Linux 6.1";
  const HugePageCount others = use_huge_pages();  // of the tests before
  const MappedMemory memory = map();
  ASSERT_NE(memory, nullptr);
  madvise(memory.get(), kBytes, MADV_NOHUGEPAGE);  // until it is full
  for (std::size_t i = 0; i < kBytes; ++i) memory.get()[i] = value_at(i);
  madvise(memory.get(), kBytes, MADV_HUGEPAGE);
  const std::uint64_t before = huge_kib();
  if (use_huge_pages().huge <= others.huge)
    GTEST_SKIP() << "this machine has no 2 MiB in one piece";
  EXPECT_GT(huge_kib(), before);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kBytes; ++i) wrong += memory.get()[i] != value_at(i);
  EXPECT_EQ(wrong, 0u);
}

TEST(HugePages, DoNotFillMemoryThatIsHardlyUsed) {
  const MappedMemory memory = map();
  ASSERT_NE(memory, nullptr);
  madvise(memory.get(), kBytes, MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < kBytes; i += kChunk) memory.get()[i] = value_at(i);
  madvise(memory.get(), kBytes, MADV_HUGEPAGE);
  use_huge_pages();
  EXPECT_LT(resident_pages(memory), kBytes / 4096 / 2);
}

TEST(HugePages, EndAtOnce) {
  for (int i = 0; i < 3; ++i) HugePages while_it_lives;
}

}  // namespace
}  // namespace ghostrank
