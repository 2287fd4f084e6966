// A file of NICs' rates. With accepted rates every message ends, and a larger one not before a
// smaller one.
#include "profiles/load/files/nic_rates.h"

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  ClusterSpec cluster;
  cluster.nodes = 3;
  cluster.nics_per_node = 2;
  try {
    const NicRates rates = parse_nic_rates(fuzz::text_of(data, size), "rates.csv", cluster);
    for (Nic nic(0); nic < Nic(6); ++nic) {
      const RateCurve* curve = rates.of(nic);
      if (!curve) continue;
      Picoseconds before = 0;
      for (const double bytes : {0., 1., 1e3, 1e8}) {
        const Picoseconds duration = curve->duration(kPicosPerSecond / 2, bytes);
        fuzz::require(duration >= before);
        before = duration;
      }
    }
    for (Picoseconds at = 0; at != NicRates::kNever;) {
      const Picoseconds next = rates.next_change(at);
      fuzz::require(next > at);
      at = next;
    }
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
