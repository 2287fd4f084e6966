// Step times of real training runs, and the jobs that emulate them: those that papers and READMEs
// publish, and files of measured iterations where they lie.
//
// Units: seconds. Threading: pure functions, except the reading of files.
#pragma once

#include <string>
#include <vector>

namespace ghostrank::fidelity {

// Whether the device's numbers were fitted to this run's time.
enum class Basis { fitted, predicted };

struct Gpt {  // sizes of a GPT; heads of 64 to 160
  int layers = 0, hidden = 0, heads = 0, sequence = 2048, vocabulary = 51200;
};

struct MeasuredStep {
  std::string table, name;
  Basis basis = Basis::predicted;
  double seconds = 0;
  std::string model;  // a name in profiles/models, or a mapping
  std::string device, cluster, precision;
  int gpus = 0, gpus_per_node = 8;
  int tp = 1, pp = 1, cp = 1, global_batch = 1, micro_batch = 1, interleave = 1;
  std::string parallel;           // further keys
  std::string network = "loggp";  // `fabric.network`
  // Not published: of these the fastest counts that fits the device's memory, one rule for all rows
  // of a table.
  std::vector<int> micro_batches, interleaves;

  // Empty if a micro-batch or an interleave does not divide what it must.
  std::string job(int micro, int chunks) const;
};

std::string to_yaml(const Gpt& gpt);

std::vector<MeasuredStep> published_steps();
// The iterations of vTrain's ground truth: files of comma-separated rows. Empty without them.
std::vector<MeasuredStep> measured_multi_node(const std::string& folder);
std::vector<MeasuredStep> measured_single_node(const std::string& folder);

}  // namespace ghostrank::fidelity
