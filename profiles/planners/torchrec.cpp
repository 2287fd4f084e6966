#include "profiles/planners/torchrec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "profiles/device/compute.h"
#include "profiles/error.h"
#include "profiles/planners/ddp.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kGrads = 2, kInput = 3;
constexpr std::uint64_t kRowBytes = 4;        // of an element: tables are fp32
constexpr std::uint64_t kOptimizerBytes = 4;  // per row: row-wise Adagrad
constexpr int kMostRanks = 4096;              // an all-to-all has a count for every pair

// Kinds of groups, each of all ranks: streams that run concurrently need separate communicators.
constexpr std::uint16_t kIds = kDataParallel + 1, kRows = kDataParallel + 2;

struct Sharding {
  std::vector<int> rank_of;                    // by table
  std::vector<std::uint64_t> tables, lookups;  // by rank: whole tables, their ids per sample
  std::uint64_t split = 0, split_lookups = 0;  // likewise, of the row-wise tables
  std::vector<std::uint64_t> split_of;         // lookups of each row-wise table
};

Sharding shard(const JobSpec& spec) {
  const Recommendation& model = *spec.model->recommendation;
  const int ranks = spec.cluster.gpus();
  Sharding out;
  out.rank_of = place_tables(model, ranks, spec.parallel, spec.run.seed);
  out.tables.resize(ranks);
  out.lookups.resize(out.tables.size());
  for (std::size_t t = 0; t < model.tables.size(); ++t) {
    const std::uint64_t lookups = model.tables[t].lookups;
    if (out.rank_of[t] == kRowWise) {
      ++out.split;
      out.split_lookups += lookups;
      out.split_of.push_back(lookups);
      continue;
    }
    ++out.tables[out.rank_of[t]];
    out.lookups[out.rank_of[t]] += lookups;
  }
  return out;
}

// Rank `i`'s share when `total` items are spread evenly over `ranks`, as whole items.
std::uint64_t part(std::uint64_t total, std::size_t i, std::size_t ranks) {
  return total * (i + 1) / ranks - total * i / ranks;
}

void check_memory(const JobSpec& spec, const Sharding& sharding) {
  const Recommendation& model = *spec.model->recommendation;
  const double have = spec.device.memory_bytes;
  const std::uint64_t ranks = spec.cluster.gpus();
  const std::uint64_t row = row_bytes(model);
  std::vector<std::uint64_t> bytes(ranks);
  for (std::size_t t = 0; t < model.tables.size(); ++t) {
    const int rank = sharding.rank_of[t];
    if (rank != kRowWise) bytes[rank] += model.tables[t].rows * row;
    if (rank == kRowWise)
      for (std::uint64_t& one : bytes) one += (model.tables[t].rows + ranks - 1) / ranks * row;
  }
  const auto fullest = std::max_element(bytes.begin(), bytes.end());
  if (have == 0 || static_cast<double>(*fullest) <= have) return;
  std::uint64_t largest = 0;  // rows of the largest whole table there
  for (std::size_t t = 0; t < model.tables.size(); ++t)
    if (sharding.rank_of[t] == fullest - bytes.begin())
      largest = std::max(largest, model.tables[t].rows);
  const auto gigabytes = [](double n) { return std::to_string(std::llround(n / 1e9)) + " GB"; };
  throw Error(
      spec.source_of("parallel.row_wise_above") + ": rank " +
      std::to_string(fullest - bytes.begin()) + " has tables of " +
      gigabytes(static_cast<double>(*fullest)) + " and the device " + spec.device.name + " has " +
      gigabytes(have) + "; use " +
      (largest > 0 ? "parallel.row_wise_above=" + std::to_string(largest - 1) + " or " : "") +
      "more GPUs (device.memory_bytes=0: no check)");
}

// Count lists of the all-to-alls, as indices into Workload::counts. The count from rank i to rank j
// is at i n + j.
struct Lists {
  std::uint32_t lengths = 0, ids = 0, rows = 0, gradients = 0;
};

Lists add_lists(const JobSpec& spec, const Sharding& sharding, Workload& workload) {
  const std::size_t n = sharding.tables.size();
  const std::uint64_t batch = spec.parallel.micro_batch;
  const std::uint64_t width = spec.model->recommendation->width;
  std::vector<std::uint64_t> lengths(n * n), ids(n * n), rows(n * n), gradients(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      lengths[i * n + j] = batch * (sharding.tables[j] + sharding.split);
      ids[i * n + j] = batch * sharding.lookups[j];
      for (const std::uint64_t lookups : sharding.split_of)
        ids[i * n + j] += part(batch * lookups, j, n);
      rows[i * n + j] = batch * width * sharding.tables[i];
      gradients[i * n + j] = batch * width * sharding.tables[j];
    }
  const auto add = [&](std::vector<std::uint64_t> list) {
    workload.counts.push_back(std::make_shared<const std::vector<std::uint64_t>>(std::move(list)));
    return static_cast<std::uint32_t>(workload.counts.size() - 1);
  };
  return {add(std::move(lengths)), add(std::move(ids)), add(std::move(rows)),
          add(std::move(gradients))};
}

// Writes one rank's step; `read` is the number of rows that the rank looks up.
class TorchrecWriter {
 public:
  TorchrecWriter(const JobSpec& spec, const Sharding& sharding, const Lists& lists,
                 std::uint64_t read)
      : spec_(spec),
        model_(*spec.model),
        device_(spec),
        sharding_(sharding),
        lists_(lists),
        row_bytes_(static_cast<double>(read * model_.recommendation->width * kRowBytes)),
        ranks_(spec.cluster.gpus()),
        dense_(model_),
        out_({"compute", "comm", "grads", "input"}) {
    dense_.layers.erase(dense_.layers.begin());  // the tables
    buckets_ = ddp_buckets(dense_, bytes_of(spec.precision.gradients),
                           static_cast<std::uint64_t>(spec.parallel.first_bucket_mb * (1 << 20)),
                           static_cast<std::uint64_t>(spec.parallel.bucket_cap_mb * (1 << 20)));
  }

  Program write() {
    fetch_ids();
    const std::size_t bottom = model_.recommendation->bottom, all = dense_.layers.size();
    out_.compute(kCompute, "lookup", device_.memory(row_bytes_, "the lookup"));
    out_.after(kComm, kCompute);
    exchange("rows to samples", lists_.rows, Func::reduce_scatter);
    for (std::size_t i = 0; i < bottom; ++i) forward(i);
    out_.after(kCompute, kComm);
    for (std::size_t i = bottom; i < all; ++i) forward(i);
    for (std::size_t i = all; i-- > bottom;) backward(i);
    out_.after(kComm, kCompute);
    exchange("gradients to rows", lists_.gradients, Func::all_gather);
    for (std::size_t i = bottom; i-- > 0;) backward(i);
    out_.after(kCompute, kComm);
    out_.compute(kCompute, "update of rows", device_.memory(2 * row_bytes_, "the update of rows"));
    out_.after(kCompute, kGrads);
    out_.compute(kCompute, "optimizer",
                 device_.optimizer(static_cast<double>(dense_.parameters())));
    return out_.take();
  }

 private:
  // For the next batch: the number of ids per feature and sample, then the ids.
  void fetch_ids() {
    if (ranks_ == 1) return;
    out_.ragged(kInput, out_.label("counts of ids"), Func::all_to_all_v, kIds, DataType::int64,
                lists_.lengths);
    out_.ragged(kInput, out_.label("ids"), Func::all_to_all_v, kIds, DataType::int64, lists_.ids);
  }

  // Exchanges rows of table-wise tables by all-to-all, of row-wise ones by `split`.
  void exchange(const char* what, std::uint32_t list, Func split) {
    if (ranks_ == 1) return;
    const DataType type = spec_.precision.parameters;
    if (sharding_.split < sharding_.rank_of.size())
      out_.ragged(kComm, out_.label(what), Func::all_to_all_v, kRows, type, list);
    if (sharding_.split > 0)
      out_.collective(kComm, what, split, kRows, type,
                      spec_.parallel.micro_batch * model_.recommendation->width * sharding_.split);
  }

  void forward(std::size_t layer) {
    const double flops = dense_.layers[layer].forward_flops * spec_.parallel.micro_batch;
    out_.compute(kCompute, "forward " + dense_.layers[layer].name,
                 device_.products(flops, "the forward of " + dense_.layers[layer].name));
  }

  void backward(std::size_t layer) {
    const double flops = 2 * dense_.layers[layer].forward_flops * spec_.parallel.micro_batch;
    out_.compute(kCompute, "backward " + dense_.layers[layer].name,
                 device_.products(flops, "the backward of " + dense_.layers[layer].name));
    if (ranks_ == 1) return;
    for (; next_ < buckets_.size() && buckets_[next_].last_layer == layer; ++next_) {
      out_.after(kGrads, kCompute);
      out_.collective(kGrads, "bucket " + std::to_string(next_), Func::all_reduce, kDataParallel,
                      spec_.precision.gradients, buckets_[next_].numel, 0, next_ + 1);
    }
  }

  const JobSpec& spec_;
  const Model& model_;
  const ComputeModel device_;
  const Sharding& sharding_;
  const Lists lists_;
  const double row_bytes_;
  const std::uint64_t ranks_;
  Model dense_;  // without its tables
  std::vector<Bucket> buckets_;
  std::size_t next_ = 0;  // next bucket to reduce
  ProgramBuilder out_;
};

void check(const JobSpec& spec) {
  check_data_parallel(spec);
  if (!spec.model->recommendation)
    throw Error(spec.source_of("model") + ": framework torchrec trains models of kind " +
                "recommendation, and " + spec.model->name +
                " is none; use dlrm-dcnv2, or another "
                "parallel.framework");
  if (spec.precision.parameters == DataType::int32)
    throw Error(spec.source_of("precision.parameters") +
                ": recommendation models do not train in int32; use bf16 or fp32");
  if (spec.cluster.gpus() > kMostRanks)
    throw Error(spec.source_of("cluster.nodes") + ": framework torchrec is planned for at most " +
                std::to_string(kMostRanks) + " GPUs, here are " +
                std::to_string(spec.cluster.gpus()) + "; lower cluster.nodes");
}

}  // namespace

std::vector<int> place_tables(const Recommendation& model, int ranks, const ParallelPlan& parallel,
                              std::uint64_t seed) {
  std::vector<int> rank_of(model.tables.size(), kRowWise);
  std::vector<std::size_t> order(model.tables.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return model.tables[a].lookups > model.tables[b].lookups;
  });
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> load(ranks);
  for (const std::size_t t : order) {
    if (parallel.row_wise_above > 0 && model.tables[t].rows > parallel.row_wise_above) continue;
    const auto least = std::min_element(load.begin(), load.end());
    const auto rank = parallel.random_tables ? static_cast<std::size_t>(random() % ranks)
                                             : static_cast<std::size_t>(least - load.begin());
    rank_of[t] = static_cast<int>(rank);
    load[rank] += model.tables[t].lookups;
  }
  return rank_of;
}

std::uint64_t row_bytes(const Recommendation& model) {
  return model.width * kRowBytes + kOptimizerBytes;
}

Workload plan_torchrec(const JobSpec& spec) {
  check(spec);
  const Sharding sharding = shard(spec);
  check_memory(spec, sharding);
  Workload workload = data_parallel_workload(spec, {});
  workload.roles.clear();
  for (const char* kind : {"ids", "embeddings"}) {
    workload.groups.push_back(
        {static_cast<std::uint16_t>(workload.group_names.size()), workload.groups[0].members});
    workload.group_names.emplace_back(kind);
  }
  const Lists lists = add_lists(spec, sharding, workload);
  const std::size_t n = sharding.tables.size();
  const auto samples = static_cast<std::uint64_t>(workload.samples_per_iteration);
  std::map<std::uint64_t, std::uint16_t> roles;  // by rows looked up
  for (std::size_t rank = 0; rank < n; ++rank) {
    std::uint64_t read = samples * sharding.lookups[rank];
    for (const std::uint64_t lookups : sharding.split_of)
      read += n * part(static_cast<std::uint64_t>(spec.parallel.micro_batch) * lookups, rank, n);
    const auto [at, fresh] =
        roles.try_emplace(read, static_cast<std::uint16_t>(workload.roles.size()));
    workload.role_of[WorldRank(rank)] = at->second;
    if (fresh)
      workload.roles.push_back({std::to_string(read) + " lookups",
                                {TorchrecWriter(spec, sharding, lists, read).write()}});
  }
  return workload;
}

}  // namespace ghostrank
