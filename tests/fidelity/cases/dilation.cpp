// One shaped job at several dilations: with links D times slower and compute D times longer the
// emulated step time must stay the same. TCP keeps its windows while idle, because the kernel's
// timers do not dilate.
#include <fstream>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/peers.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;

constexpr double kRate = 800e6, kMost = 0.02;
constexpr int kDilations[] = {1, 4, 16};

constexpr char kJob[] =
    "schema: ghostrank/job/1\n"
    "model: {kind: layers, name: dilated, layers: [\n"
    "  {parameters: [1500000], forward_us: 10000, backward_us: 20000},\n"
    "  {parameters: [1500000], forward_us: 10000, backward_us: 20000},\n"
    "  {parameters: [1500000], forward_us: 10000, backward_us: 20000},\n"
    "  {parameters: [1500000], forward_us: 10000, backward_us: 20000}], optimizer_us: 1000}\n"
    "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1, nic: {rate: unlimited}}\n"
    "parallel: {framework: ddp, bucket_cap_mb: 4}\n"
    "collectives: {library: gloo}\n"
    "fabric: {kind: ofi}\n"
    "run: {iterations: 4, warmup: 2, probe_ms: 0}\n";

}  // namespace

Findings compare_dilations(const Options&) {
  Findings out;
  Lab lab;
  lab.keep_windows();
  std::ofstream(lab.file("dilated.yaml")) << kJob;
  std::vector<Row> rows{{"dilation", "links", "step", "", "faithful"}};
  double first = 0;
  for (const int d : kDilations) {
    lab.shape({kRate / d, kBurst});
    const json result =
        play(lab, 4, "run " + lab.file("dilated.yaml") + " -s scale.dilation=" + std::to_string(d));
    const double step = result["step_time"]["median"];
    if (first == 0) first = step;
    rows.push_back(
        {std::to_string(d), megabits(kRate / d), milliseconds(step),
         d == 1 ? "" : percent(hold(out, "dilation " + std::to_string(d), step, first, kMost)),
         result["fidelity"]["faithful"].get<bool>() ? "yes" : "no"});
  }
  out.markdown =
      "Four ranks of a DDP job over gloo's schedules, emulated links of " + megabits(kRate) +
      ". What the lab itself adds (some 50 µs a message) is not scaled.\n\n" + markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
