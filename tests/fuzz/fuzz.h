// Shared by all fuzz targets. A target is one file with an LLVMFuzzerTestOneInput that feeds one
// parser of outside input: it must accept the input or refuse it as documented, and nothing else
// (no crash, undefined behaviour, hang, or disproportionate memory). Linked with libFuzzer in the
// preset `fuzz`, else with driver.cpp.
//
// Threading: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#include "switch/ports/fd.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace ghostrank::fuzz {

// Goes up when the target accepts an input; one with several parsers may count an input more than
// once. The driver fails if none or all of its inputs are accepted: such mutations test nothing.
inline std::uint64_t accepted = 0;

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Aborts when the target finds a violation, so that the input is kept.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

// A file in memory, for parsers that take a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("input", MFD_CLOEXEC)) { require(fd_.is_open()); }

  // Writes `text` to the file and returns its path.
  std::string with(std::string_view text) const {
    require(ftruncate(fd_.get(), 0) == 0);
    require(pwrite(fd_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return "/proc/self/fd/" + std::to_string(fd_.get());
  }

 private:
  Fd fd_;
};

}  // namespace ghostrank::fuzz
