// Gloo's collectives, called through torch.distributed.
#include "tests/fidelity/cases.h"
#include "tests/fidelity/cases/collectives.h"
#include "tests/fidelity/gloo_bytes.h"

namespace ghostrank::fidelity {
namespace {

// More than the time by which ranks leave a barrier apart.
constexpr int kApart_ms = 3;

// Calls in which two ranks send each other whole blocks over one shared connection. There gloo
// races: its notification that a receive is posted waits behind data that has left already, so a
// call takes one to two times what the link needs, depending on which rank happens to begin first.
// When ranks begin one after the other, chance has no part.
std::string races(const Call& call, int n) {
  const bool race = call.func == Func::all_to_all || (call.func == Func::all_gather && n == 2);
  return race && call.apart_ms == 0 ? "gloo races" : "";
}

}  // namespace

Findings compare_gloo(const Options& options) {
  const Library gloo{
      "gloo",
      "gloo",
      [](testing::Lab& lab, int n) {
        return torch_workers(lab, n, {{{{1000}, 0, 0}}, 0, 25});
      },
      {{"all_reduce", Func::all_reduce},
       {"all_gather", Func::all_gather, true},
       {"all_gather", Func::all_gather, true, "", kApart_ms},
       {"broadcast", Func::broadcast},
       {"all_to_all", Func::all_to_all, true},
       {"all_to_all", Func::all_to_all, true, "", kApart_ms}},
      sizes_of(options),
      [](const Collective& call, const std::string&) { return gloo_bytes(call).payload; },
      1,
      0.05,
      races};
  Findings out;
  testing::Lab lab;
  std::vector<Row> rows{heading(gloo)};
  for (const int n : {2, 4}) {
    if (options.ranks != 0 && options.ranks != n) continue;
    lab.shape({kSlow, kBurst});
    lab.keep_windows();
    compare_calls(lab, n, gloo, rows, out);
  }
  out.markdown =
      "Links of " + megabits(kSlow) +
      "; time of a call, calls back to back, of the rank that takes longest, median of three "
      "rounds in turns; segments that TCP sent again, of gloo's and ghostrank's rounds; what the "
      "hypervisor took of the cores in the worst of them. \"" +
      std::to_string(kApart_ms) +
      " ms apart\": before each call is a barrier, after which rank r waits r times as long; both "
      "are in the times. A barrier carries nothing: its time is that of the two programs to wake "
      "up.\n\n" +
      markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
