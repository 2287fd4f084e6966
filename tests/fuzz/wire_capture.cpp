// Packets of captures: no read outside a frame, nothing counted twice, one error for a damaged
// file.
#include "tools/compare/wire_capture.h"

#include <vector>

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  try {
    WireCapture capture({53}, 1'000'000);
    const std::string path = file.with(fuzz::text_of(data, size));
    capture.add({path});
    const auto once = capture.pairs();
    capture.add({path});  // the same connections again
    const auto twice = capture.pairs();
    fuzz::require(once.size() == twice.size());
    for (const auto& [pair, traffic] : once) {
      fuzz::require(twice.at(pair).payload == traffic.payload);
      std::uint64_t over_time = 0;
      for (const auto& [interval, bytes] : traffic.over_time) over_time += bytes;
      fuzz::require(over_time == traffic.payload);
    }
    ++fuzz::accepted;
  } catch (const Error& error) {
    fuzz::require(!std::string(error.what()).empty());
  }
  return 0;
}
