#include "tests/fidelity/gloo_bytes.h"

#include "collectives/gloo/gloo.h"

namespace ghostrank::fidelity {

GlooBytes gloo_bytes(const Collective& call) {
  const auto schedule = find_algorithm("gloo", call.func, "auto")->make(call, Communicator{});
  constexpr double kForward = kGlooFraming.preamble_bytes + kGlooFraming.send_ready_bytes,
                   kBack = kGlooFraming.recv_ready_bytes;
  GlooBytes sent;
  for (GroupRank r = 0; r < call.size; ++r)
    for (int a = 0; a < schedule->actors(r); ++a)
      for (int k = 0; k < schedule->actor(r, a).steps; ++k) {
        const Step step = schedule->step(r, a, k);
        for (const GroupRank peer : step.send_to) {
          const auto bytes = static_cast<double>(step.send.count * call.element_bytes);
          sent.data[{r, peer}] += bytes;
          sent.payload[{r, peer}] += bytes + step.slices * kForward;
          sent.payload[{peer, r}] += step.slices * kBack;
        }
      }
  return sent;
}

void add(Bytes& to, const Bytes& bytes, double times) {
  for (const auto& [pair, count] : bytes) to[pair] += times * count;
}

}  // namespace ghostrank::fidelity
