// Packets over RoCEv2 on one queue pair: repeatedly a length (two bytes, big-endian) and that many
// bytes. A packet that is read lies within its frame, and reads back as written.
#include "switch/wire/roce.h"

#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace ghostrank::switchml {
namespace {

void check(const std::vector<std::byte>& frame, RoceQueue& queue) {
  RocePacket packet;
  if (parse_roce(frame, packet) != Kind::switchml) return;
  const auto* begin = frame.data();
  fuzz::require(packet.values >= begin &&
                packet.values + 4 * kRoceElements <= begin + frame.size());
  fuzz::require(worker_of(packet.queue_pair) < kMaxWorkers &&
                queue_of(packet.queue_pair) < kQueuePairsOfWorker);
  std::vector<std::byte> again(roce_frame_bytes(packet.opcode));
  write_roce_header(packet, again.data());
  RocePacket same;
  fuzz::require(parse_roce(again, same) == Kind::switchml && same.opcode == packet.opcode &&
                same.sequence == packet.sequence && same.remote_key == packet.remote_key &&
                same.queue_pair == packet.queue_pair && same.e0 == packet.e0);
  if (const auto place = follow(queue, packet)) fuzz::require(place->slot < 1 << 15);
  ++fuzz::accepted;
}

}  // namespace
}  // namespace ghostrank::switchml

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank::switchml;
  RoceQueue queue;
  for (std::size_t at = 0; size - at >= 2;) {
    const std::size_t asked = static_cast<std::size_t>(data[at] << 8 | data[at + 1]);
    at += 2;
    const std::size_t bytes = std::min(asked, size - at);
    const auto* begin = reinterpret_cast<const std::byte*>(data + at);
    check({begin, begin + bytes}, queue);  // a copy, so that reading past its end is seen
    at += bytes;
  }
  return 0;
}
