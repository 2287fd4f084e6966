// Answers of a SwitchML controller. A message that is read and written out reads back as the same.
#include "switch/controller/messages.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank::switchml;
  const auto fields = read_message(ghostrank::fuzz::text_of(data, size));
  if (!fields) return 0;
  ++ghostrank::fuzz::accepted;
  ghostrank::fuzz::require(read_message(message_of(*fields)) == fields);
  answer_of(*fields);
  return 0;
}
