// What every fuzz target shares. A target is one file with an LLVMFuzzerTestOneInput that feeds one
// parser of outside input: it accepts what it is given or refuses it as documented, and nothing
// else may happen (no crash, no undefined behaviour, no hang, no memory beyond all proportion).
// Linked with libFuzzer where the preset is `fuzz`, else with driver.cpp.
//
// Threading: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace ghostrank::fuzz {

// Inputs that their target found good. The driver wants some, and some others: mutations that are
// all refused (or never) show nothing.
inline std::uint64_t accepted = 0;

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Holds when the target found something that must never be: aborts, so that the input is kept.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

// A file in memory, for parsers that want a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("input", MFD_CLOEXEC)) { require(fd_ >= 0); }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Its path, once it holds `text`.
  std::string with(std::string_view text) const {
    require(ftruncate(fd_, 0) == 0);
    require(pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

}  // namespace ghostrank::fuzz
