// Open MPI's collectives over its TCP transport, with every message eager: with rendezvous, ranks
// that exchange messages would take turns, which depends on the transport and not on the schedule.
#include <thread>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/cases/collectives.h"
#include "tests/fidelity/gloo_bytes.h"

namespace ghostrank::fidelity {
namespace {

// Open MPI 4.1's header of an eager message: 8 bytes of its TCP transport, 14 for matching.
constexpr double kHeader = 22;

Bytes payload_of(const Collective& call, const std::string& algorithm) {
  const std::string name = algorithm.empty() ? "auto" : algorithm;
  const auto schedule = find_algorithm("openmpi-4.1", call.func, name)->make(call, Communicator{});
  Bytes sent;
  for (GroupRank r = 0; r < call.size; ++r)
    for (int a = 0; a < schedule->actors(r); ++a)
      for (int k = 0; k < schedule->actor(r, a).steps; ++k) {
        const Step step = schedule->step(r, a, k);
        for (const GroupRank peer : step.send_to)
          sent[{r, peer}] +=
              static_cast<double>(step.send.count * call.element_bytes) + step.slices * kHeader;
      }
  return sent;
}

}  // namespace

Findings compare_mpi(const Options& options) {
  Library openmpi{"openmpi-4.1",
                  "Open MPI",
                  mpi_workers,
                  {{"all_reduce", Func::all_reduce},
                   {"all_reduce", Func::all_reduce, false, "recursive_doubling"},
                   {"all_reduce", Func::all_reduce, false, "ring"},
                   {"all_gather", Func::all_gather, true},
                   {"broadcast", Func::broadcast},
                   {"all_to_all", Func::all_to_all, true},
                   {"reduce_scatter", Func::reduce_scatter, true}},
                  sizes_of(options),
                  payload_of,
                  2,
                  0.05,
                  [](const Call&, int) { return std::string(); }};
  Findings out;
  std::string version;
  std::vector<Row> rows{heading(openmpi)};
  for (const int n : {2, 4, 8}) {
    if (options.ranks != 0 && options.ranks != n) continue;
    // Open MPI's ranks spin, so with more than two per core some are late by milliseconds. Then
    // calls begin together, on links of half the rate.
    openmpi.separate = n > 2 * static_cast<int>(std::thread::hardware_concurrency());
    testing::Lab lab(n);
    lab.shape({openmpi.separate ? kSlow / 2 : kSlow, kBurst});
    lab.keep_windows();
    version = compare_calls(lab, n, openmpi, rows, out)["version"];
  }
  out.markdown =
      "Open MPI " + version + ", links of " + megabits(kSlow) +
      "; time of a call of the rank that takes longest, median of three rounds in turns; segments "
      "that TCP sent again, of Open MPI's and ghostrank's rounds; what the hypervisor took of the "
      "cores in the worst of them. Calls of a round are back to back; with more than two ranks a "
      "core links have half the rate, calls begin together, and the median call stands here. "
      "Without a name the algorithm is Open MPI's own choice. A barrier carries nothing.\n\n" +
      markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
