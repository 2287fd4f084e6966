#include "tests/fidelity/measured_steps.h"

#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ghostrank::fidelity {
namespace {

// What NCCL's rings reach inside a node of eight A100s: a line through the times of all-reduces of
// 8 to 512 MiB that vTrain publishes for each number of GPUs (nccl-tests), within 1.5 to 2.3 % of
// them on average. What a call takes beyond its bytes hardly grows with the ranks.
std::string a100_node(int ranks) {
  return ranks <= 2   ? "intra_node: {rate: 1496Gbps, latency_us: 21.2}"
         : ranks <= 4 ? "intra_node: {rate: 1706Gbps, latency_us: 9}"
                      : "intra_node: {rate: 1774Gbps, latency_us: 5.5}";
}
// Likewise of H100s: nccl-tests' bus bandwidth on NVLink 4, as published; the latency of a hop is
// that of NCCL's own tuner.
constexpr const char* kH100Node = "intra_node: {rate: 2900Gbps, latency_us: 3.4}";
constexpr const char* kSelene = "nics_per_node: 8, nic: {rate: 200Gbps, latency_us: 2}, ";
constexpr const char* kEos = "nics_per_node: 8, nic: {rate: 400Gbps, latency_us: 2}, ";
constexpr const char* kVtrain = "nics_per_node: 4, nic: {rate: 200Gbps, latency_us: 2}, ";

// Megatron-LM before 2022, when products began to add weights' gradients up themselves.
constexpr const char* kOf2021 = "attention: unfused, gradient_accumulation_fusion: false";
// Until August 2021 all-reduces of gradients inside a layer waited for all of its products.
constexpr const char* kWaits = ", async_tensor_model_parallel_allreduce: false";
constexpr const char* kReducedAtTheEnd = ", overlap_grad_reduce: false";

constexpr const char* kMixed = "{parameters: bf16, gradients: fp32}";
constexpr const char* kHalf = "{parameters: bf16, gradients: bf16}";

// Narayanan et al., SC'21, table 1: the time follows from the published TFLOP/s per GPU, which
// count the recomputed forward. Micro-batches, interleaves and 16-bit gradients are those of
// Megatron-LM's scripts for the table (examples/sc21); models of one stage were reduced by PyTorch
// DDP during the last backward.
struct Sc21 {
  const char* name;
  int heads, hidden, layers, tp, pp, gpus, batch;
  double tflops;
  int micro_batch, interleave = 1;
  Basis basis = Basis::predicted;
};
constexpr std::array kSc21{Sc21{"1.7B", 24, 2304, 24, 1, 1, 32, 512, 137, 16, 1, Basis::fitted},
                           Sc21{"3.6B", 32, 3072, 30, 2, 1, 64, 512, 138, 16},
                           Sc21{"7.5B", 32, 4096, 36, 4, 1, 128, 512, 142, 16},
                           Sc21{"18.4B", 48, 6144, 40, 8, 1, 256, 1024, 135, 8},
                           Sc21{"39.1B", 64, 8192, 48, 8, 2, 512, 1536, 138, 4},
                           Sc21{"76.1B", 80, 10240, 60, 8, 4, 1024, 1792, 140, 2, 3},
                           Sc21{"145.6B", 96, 12288, 80, 8, 8, 1536, 2304, 148, 2, 2},
                           Sc21{"310.1B", 128, 16384, 96, 8, 16, 1920, 2160, 155, 1, 2},
                           Sc21{"529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 163, 1, 3},
                           Sc21{"1008B", 160, 25600, 128, 8, 64, 3072, 3072, 163, 1}};

double sc21_seconds(const Sc21& row) {
  const double s = 2048, v = 51200, h = row.hidden, l = row.layers;
  const double flops = 96 * row.batch * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  return flops / (row.gpus * row.tflops * 1e12);
}

// Korthikanti et al., 2022, table 5: one replica, with full recomputation, and with sequence
// parallelism and selective recomputation.
struct Korthikanti {
  const char* name;
  int layers, hidden, heads, pp, interleave, gpus, batch, micro_batch;
  double full, selective;
  Basis basis = Basis::predicted;
};
constexpr std::array kKorthikanti{
    Korthikanti{"22B", 48, 6144, 64, 1, 1, 8, 4, 4, 1.42, 1.10, Basis::fitted},
    Korthikanti{"175B", 96, 12288, 96, 8, 3, 64, 64, 1, 18.13, 13.75},
    Korthikanti{"530B", 105, 20480, 128, 35, 3, 280, 280, 1, 49.05, 37.83},
    Korthikanti{"1T", 128, 25600, 160, 64, 1, 512, 512, 1, 94.42, 71.49}};

// Megatron-core r0.8 on H100, weak scaling: the time follows from the published TFLOP/s per GPU,
// which count half of the attention. Megatron-LM adds gradients of bf16 up, and reduces them, in 32
// bits. Its README names --tp-comm-overlap.
struct MegatronCore {
  const char* name;
  int heads, hidden, layers, tp, pp, gpus, batch;
  double seconds;
  Basis basis = Basis::predicted;
};
constexpr std::array kMegatronCore{
    MegatronCore{"1.7B", 16, 2048, 24, 1, 1, 48, 192, .403},
    MegatronCore{"7.1B", 32, 4096, 30, 2, 1, 96, 192, .747, Basis::fitted},
    MegatronCore{"16B", 48, 6144, 32, 4, 1, 192, 192, .809},
    MegatronCore{"32B", 56, 7168, 48, 8, 1, 384, 192, .854},
    MegatronCore{"70B", 64, 8192, 84, 8, 2, 768, 384, 2.094},
    MegatronCore{"119B", 80, 10240, 92, 8, 4, 1536, 768, 3.535, Basis::fitted},
    MegatronCore{"177B", 96, 12288, 96, 8, 6, 2304, 1152, 5.122},
    MegatronCore{"314B", 128, 16384, 96, 8, 8, 3072, 1536, 8.232},
    MegatronCore{"462B", 144, 18432, 112, 8, 16, 6144, 3072, 12.491}};

std::string number(int value) { return std::to_string(value); }

MeasuredStep of_sc21(const Sc21& row) {
  MeasuredStep step{"SC'21 table 1",
                    std::string(row.name) + ", micro-batch " + number(row.micro_batch), row.basis};
  step.seconds = sc21_seconds(row);
  step.model = to_yaml({row.layers, row.hidden, row.heads});
  step.device = "a100-sxm-80gb";
  step.cluster = kSelene + a100_node(row.tp);
  step.precision = kHalf;
  step.gpus = row.gpus;
  step.tp = row.tp;
  step.pp = row.pp;
  step.global_batch = row.batch;
  step.micro_batch = row.micro_batch;
  step.interleave = row.interleave;
  step.parallel = std::string("recompute: full, ") + kOf2021 + (row.tp > 1 ? kWaits : "") +
                  (row.pp > 1 ? kReducedAtTheEnd : ", bucket_size: 13107200");
  return step;
}

MeasuredStep of_korthikanti(const Korthikanti& row, bool selective) {
  MeasuredStep step{"Korthikanti table 5",
                    std::string(row.name) + (selective ? " selective" : " full"), row.basis};
  step.seconds = selective ? row.selective : row.full;
  step.model = to_yaml({row.layers, row.hidden, row.heads});
  step.device = "a100-sxm-80gb";
  step.cluster = kSelene + a100_node(8);
  step.precision = kMixed;
  step.gpus = row.gpus;
  step.tp = 8;
  step.pp = row.pp;
  step.global_batch = row.batch;
  step.micro_batch = row.micro_batch;
  step.interleave = row.interleave;
  step.parallel = std::string("attention: unfused, ") +
                  (selective ? "sequence_parallel: true, recompute: selective" : "recompute: full");
  return step;
}

MeasuredStep of_megatron_core(const MegatronCore& row) {
  MeasuredStep step{"Megatron-core H100", row.name, row.basis};
  step.seconds = row.seconds;
  step.model = to_yaml({row.layers, row.hidden, row.heads, 4096, 131072});
  step.device = "h100-sxm";
  step.cluster = std::string(kEos) + kH100Node;
  step.precision = kMixed;
  step.gpus = row.gpus;
  step.tp = row.tp;
  step.pp = row.pp;
  step.global_batch = row.batch;
  step.parallel = "distributed_optimizer: true";
  if (row.tp > 1) step.parallel += ", sequence_parallel: true, tp_comm_overlap: true";
  step.micro_batches = {1, 2, 4};
  step.interleaves = {1, 2, 3, 4, 6, 7, 12, 23};
  return step;
}

// Llama-3's report: its 128 stages hold a layer each, less one at either end.
MeasuredStep of_llama(const char* name, int gpus, int global_batch, double tflops) {
  MeasuredStep step{"Llama-3 405B H100", name};
  const double tokens = 8192.0 * global_batch, parameters = 405.85e9, layers = 126, h = 16384;
  const double flops = 6 * parameters * tokens + 6 * layers * h * 8192 * tokens;
  step.seconds = flops / (gpus * tflops * 1e12);
  step.model = "llama3.1-405b";
  step.device = "h100-sxm";
  step.cluster = std::string(kEos) + kH100Node;
  step.precision = kMixed;
  step.gpus = gpus;
  step.tp = 8;
  step.pp = 16;
  step.global_batch = global_batch;
  step.interleave = 8;
  step.parallel =
      "distributed_optimizer: true, sequence_parallel: true, "
      "account_for_embedding_in_pipeline_split: true, account_for_loss_in_pipeline_split: true";
  return step;
}

// Strong scaling of 177B with a batch of 1,152: model FLOPs of 47 % of the peak on 96 GPUs, 42 % on
// 4,608; the time follows.
MeasuredStep of_strong(int gpus, double mfu) {
  MegatronCore row = kMegatronCore[6];
  MeasuredStep step = of_megatron_core(row);
  step.table = "strong scaling of 177B";
  step.name = number(gpus) + " GPUs";
  step.basis = Basis::predicted;
  step.gpus = gpus;
  step.seconds = row.seconds * 432.8 / (mfu * 989.4) * row.gpus / gpus;
  return step;
}

// The numbers below a line of names. A field that is no number is an error, as the columns after it
// would be taken for others.
std::vector<std::vector<double>> rows_of(const std::string& path) {
  std::vector<std::vector<double>> rows;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  for (int number = 2; std::getline(file, line); ++number) {
    std::vector<double> row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) {
      std::istringstream text(field);
      double value = 0;
      if (!(text >> value) || !(text >> std::ws).eof())
        throw std::runtime_error(path + ":" + std::to_string(number) + ": '" + field +
                                 "' is no number; correct or remove the row");
      row.push_back(value);
    }
    if (row.size() >= 11) rows.push_back(row);
  }
  return rows;
}

constexpr int kVocabulary = 50257;  // of vTrain's runs

// Columns from the number of GPUs on: global batch, micro-batch, hidden size, heads, layers,
// sequence, tp, dp, pp, milliseconds.
constexpr std::size_t kTp = 7;
MeasuredStep of_row(const std::vector<double>& row, std::size_t from, int vocabulary) {
  const auto at = [&](std::size_t column) { return static_cast<int>(row.at(from + column)); };
  MeasuredStep step;
  step.gpus = at(0);
  step.gpus_per_node = std::min(step.gpus, 8);
  step.global_batch = at(1);
  step.micro_batch = at(2);
  step.tp = at(kTp);
  step.model = to_yaml({at(5), at(3), at(4), at(6), vocabulary});
  step.pp = at(9);
  step.seconds = row.at(from + 10) * 1e-3;
  step.name = "h " + number(at(3)) + ", " + number(at(5)) + " layers, tp " + number(step.tp) +
              ", dp " + number(at(8)) + ", pp " + number(step.pp) + ", batch " +
              number(step.global_batch) + " by " + number(step.micro_batch);
  step.basis = Basis::fitted;
  step.device = "a100-sxm-80gb";
  // Tensor-parallel calls are most of those inside a node.
  const std::string node = a100_node(step.tp > 1 ? step.tp : std::min(8, at(8)));
  step.cluster = step.gpus < 8 ? "nics_per_node: 1, nic: {rate: 200Gbps, latency_us: 2}, " + node
                               : kVtrain + node;
  step.precision = kHalf;
  step.parallel = std::string(kOf2021) + kReducedAtTheEnd;
  return step;
}

}  // namespace

std::string to_yaml(const Gpt& gpt) {
  return "{kind: transformer, name: gpt, architecture: gpt2, layers: " + number(gpt.layers) +
         ", hidden: " + number(gpt.hidden) + ", heads: " + number(gpt.heads) +
         ", ffn: " + number(4 * gpt.hidden) + ", sequence: " + number(gpt.sequence) +
         ", vocabulary: " + number(gpt.vocabulary) +
         ", tied_embeddings: true, position_embeddings: learned, norm: layernorm, bias: true}";
}

std::string MeasuredStep::job(int micro, int chunks) const {
  const int dp = gpus / (tp * pp * cp);
  if (global_batch % (dp * micro) != 0) return "";
  const int micro_batches_of_rank = global_batch / (dp * micro);
  if (chunks > 1 && (pp == 1 || micro_batches_of_rank % pp != 0)) return "";
  std::string text =
      "schema: ghostrank/job/1\nmodel: " + model + "\ndevice: {base: " + device +
      (micro_batches.empty() ? ", memory_bytes: 0" : "") + "}\nprecision: " + precision +
      "\ncluster: {nodes: " + number(gpus / gpus_per_node) +
      ", gpus_per_node: " + number(gpus_per_node) + ", " + cluster +
      "}\nparallel: {framework: megatron, tp: " + number(tp) + ", pp: " + number(pp) +
      ", cp: " + number(cp) + ", global_batch: " + number(global_batch) +
      ", micro_batch: " + number(micro) + ", " + parallel;
  const bool sequence = parallel.find("sequence_parallel: true") != std::string::npos;
  if (tp > 1 && pp > 1 && !sequence) text += ", scatter_gather_tensors_in_pipeline: true";
  if (chunks > 1) text += ", schedule: interleaved, interleave: " + number(chunks);
  return text +
         "}\ncollectives: {library: nccl-2.30}\nfabric: {kind: virtual, network: " + network +
         "}\nrun: {warmup: 0, iterations: 1, seed: 1}\n";
}

std::vector<MeasuredStep> published_steps() {
  std::vector<MeasuredStep> steps;
  for (const Sc21& row : kSc21) steps.push_back(of_sc21(row));
  for (const Korthikanti& row : kKorthikanti)
    for (const bool selective : {false, true}) steps.push_back(of_korthikanti(row, selective));
  for (const MegatronCore& row : kMegatronCore) steps.push_back(of_megatron_core(row));
  for (const auto& [gpus, mfu] : {std::pair{96, .47}, std::pair{4608, .42}})
    steps.push_back(of_strong(gpus, mfu));
  steps.push_back(of_llama("8,192 GPUs", 8192, 2048, 430));
  steps.push_back(of_llama("16,384 GPUs", 16384, 2048, 400));
  return steps;
}

std::vector<MeasuredStep> measured_multi_node(const std::string& folder) {
  std::vector<MeasuredStep> steps;
  for (const auto& row : rows_of(folder + "/ground_truth_multi.csv")) {
    MeasuredStep step = of_row(row, 1, kVocabulary);
    step.table = "A100, several nodes";
    step.parallel += ", recompute: full";
    std::ostringstream size;
    size << row[0] << "B, ";
    step.name = size.str() + step.name;
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<MeasuredStep> measured_single_node(const std::string& folder) {
  std::vector<MeasuredStep> steps;
  for (const auto& row : rows_of(folder + "/ground_truth_single.csv")) {
    // vTrain's own model gives each rank a tp-th of the vocabulary, unpadded: heads are as slow as
    // products of such sizes are, but for tp 2.
    const int tp = static_cast<int>(row.at(kTp));
    MeasuredStep step = of_row(row, 0, kVocabulary / tp * tp);
    step.table = "A100, one node, composed";
    step.parallel += ", make_vocab_size_divisible_by: 1";
    // No row is a run: each is the sum that vTrain's predictor forms of a profile of one layer on
    // one GPU and of the times of calls. So nothing is launched while a call is under way.
    if (tp > 1) step.parallel += ", blocking_wait: true";
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace ghostrank::fidelity
