// Frames for the compiled switch: repeatedly a port, a length (two bytes, big-endian) and that many
// bytes. For all inputs, frames that leave are whole and go to existing ports.
#include <algorithm>
#include <vector>

#include "switch/compiled/compiled.h"
#include "tests/fuzz/fuzz.h"

namespace ghostrank::switchml {
namespace {

constexpr int kPorts = 3;

class Checked final : public Transmitter {
 public:
  std::byte* frame(int port, std::size_t bytes) override {
    fuzz::require(port >= 0 && port < kPorts && bytes <= 1 << 16);
    ++frames;
    frame_.assign(bytes, std::byte{0});
    return frame_.data();
  }

  int frames = 0;

 private:
  std::vector<std::byte> frame_;
};

SwitchPlan plan() {
  SwitchPlan plan;
  plan.ports = kPorts;
  plan.ip = 0x0a0000fd;
  plan.forward = {{{2, 0, 0, 0, 0, 1}, 1}};
  plan.loss = {{0, 100}, {100, 0}};
  JobPlan job{"a", 32, 4, 4, kWorkerPort, {{0, {}, 0x0a000001}, {1, {}, 0x0a000002}}};
  JobPlan leaf{"b", 64, 8, 1, kWorkerPort, {{1, {}, 0x0a000002}}};
  JobPlan roce{"c", 256, 0, 2, kWorkerPort, {{0, {}, 0x0a000001}, {1, {}, 0x0a000002}}};
  job.all_functions = leaf.all_functions = true;
  leaf.first_worker = 3;
  leaf.uplink = Uplink{2, {}, 0x0a0000fe};
  roce.format = Format::roce;
  for (Worker& worker : roce.workers) worker.queue_pairs = {{1, 0}, {2, 0}};
  plan.jobs = {job, leaf, roce};
  return plan;
}

}  // namespace
}  // namespace ghostrank::switchml

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank::switchml;
  CompiledSwitch sw(plan());
  Checked out;
  for (std::size_t at = 0; size - at >= 3;) {
    const int port = data[at] % kPorts;
    const std::size_t asked = static_cast<std::size_t>(data[at + 1] << 8 | data[at + 2]);
    at += 3;
    // A copy, so that reading past its end is seen.
    const std::size_t bytes = std::min(asked, size - at);
    const auto* begin = reinterpret_cast<const std::byte*>(data + at);
    const std::vector<std::byte> frame(begin, begin + bytes);
    sw.receive(port, frame, out);
    at += bytes;
  }
  if (out.frames > 0) ++ghostrank::fuzz::accepted;
  return 0;
}
