// Captures: every frame lies inside the file; damaged files are refused with an error.
#include <stdexcept>
#include <vector>

#include "switch/ports/pcap_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  try {
    PcapReader reader(file.with(fuzz::text_of(data, size)));
    std::size_t bytes = 0, sum = 0;
    while (const auto frame = reader.next()) {
      bytes += frame->bytes.size();
      for (const std::byte b : frame->bytes) sum += std::to_integer<std::size_t>(b);
    }
    fuzz::require(bytes <= size && sum <= 255 * bytes);
    ++fuzz::accepted;
  } catch (const std::runtime_error& error) {
    fuzz::require(!std::string(error.what()).empty());
  }
  return 0;
}
