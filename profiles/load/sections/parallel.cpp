#include "profiles/load/sections/parallel.h"

#include <optional>
#include <string>

#include "profiles/input/quantity.h"
#include "profiles/planners/megatron/routing.h"

namespace ghostrank {
namespace {

void read_megatron(const Settings& in, ParallelPlan& out) {
  out.tp = in.small("parallel.tp");
  out.pp = in.small("parallel.pp");
  out.cp = in.small("parallel.cp");
  out.ep = in.small("parallel.ep");
  out.expert_tp = in.small("parallel.expert_tp");
  out.deduplicated = in.text("parallel.expert_dispatch") == "deduplicated";
  out.expert_imbalance = in.number("parallel.expert_imbalance");
  out.expert_load = read_expert_load(in.at("parallel.expert_load").raw);
  out.sequence_parallel = in.boolean("parallel.sequence_parallel");
  out.schedule = in.text("parallel.schedule");
  out.interleave = in.small("parallel.interleave");
  out.global_batch = in.small("parallel.global_batch");
  out.distributed_optimizer = in.boolean("parallel.distributed_optimizer");
  out.overlap_grad_reduce = in.boolean("parallel.overlap_grad_reduce");
  const std::string& gather = in.text("parallel.overlap_param_gather");
  out.overlap_param_gather = gather == "auto" ? out.overlap_grad_reduce : gather == "true";
  out.bucket_size = in.integer("parallel.bucket_size");
  const std::string& recompute = in.text("parallel.recompute");
  out.recompute = recompute == "full"        ? Recompute::full
                  : recompute == "selective" ? Recompute::selective
                                             : Recompute::none;
  out.attention =
      in.text("parallel.attention") == "unfused" ? Attention::unfused : Attention::fused;
  out.fused_accumulation = in.boolean("parallel.gradient_accumulation_fusion");
  out.blocking_wait = in.boolean("parallel.blocking_wait");
  out.async_allreduce = in.boolean("parallel.async_tensor_model_parallel_allreduce");
  out.tp_comm_overlap = in.boolean("parallel.tp_comm_overlap");
  out.scatter_pipeline = in.boolean("parallel.scatter_gather_tensors_in_pipeline");
  out.vocabulary_multiple = in.small("parallel.make_vocab_size_divisible_by");
  const std::string& comm = in.text("parallel.cp_comm");
  out.cp_a2a = in.small("parallel.cp_a2a");
  out.cp_comm = comm == "a2a"                                           ? ContextComm::a2a
                : comm == "a2a+p2p"                                     ? ContextComm::hierarchical
                : comm == "all_gather"                                  ? ContextComm::all_gather
                : comm == "p2p" || out.framework == Framework::megatron ? ContextComm::p2p
                                                                        : ContextComm::all_gather;
  out.order = in.text("parallel.order");
  out.embedding_in_split = in.boolean("parallel.account_for_embedding_in_pipeline_split");
  out.loss_in_split = in.boolean("parallel.account_for_loss_in_pipeline_split");
  out.first_layers = in.small("parallel.decoder_first_pipeline_num_layers");
  out.last_layers = in.small("parallel.decoder_last_pipeline_num_layers");
  out.pipeline_layout = in.text("parallel.pipeline_model_parallel_layout");
}

bool has_foreach_optimizer(const Settings& in, Framework framework) {
  const std::string& implementation = in.text("parallel.optimizer_implementation");
  if (implementation == "auto") return framework != Framework::torchtitan;
  return implementation == "foreach";
}

void read_zero(const Settings& in, ParallelPlan& out) {
  const auto elements = [&](const char* key) { return in.integer(key); };
  const std::string& overlap = in.text("parallel.overlap_comm");
  out.overlap_comm = overlap == "auto" ? out.framework == Framework::zero3 : overlap == "true";
  out.multi_rank_allreduce = in.boolean("parallel.use_multi_rank_bucket_allreduce");
  out.prefetch_bucket = elements("parallel.stage3_prefetch_bucket_size");
  out.persistence = elements("parallel.stage3_param_persistence_threshold");
  out.max_live = elements("parallel.stage3_max_live_parameters");
  out.max_reuse = elements("parallel.stage3_max_reuse_distance");
}

// Sizes of pieces, and how many of them may be under way.
void read_partitions(const Settings& in, ParallelPlan& out) {
  const Setting& partition = in.at("parallel.partition_bytes");
  out.partition_bytes = static_cast<std::uint64_t>(in.integer("parallel.partition_bytes"));
  if (out.partition_bytes > 0 && out.partition_bytes < 4096)
    fail(partition.mark, "parallel.partition_bytes is " + partition.text +
                             "; it must be from 4096 to 1099511627776, or 0 for the framework's");
  if (out.partition_bytes == 0)
    out.partition_bytes = out.framework == Framework::byteps ? 4'096'000
                          : out.framework == Framework::phub ? 32'768
                                                             : 4'000'000;
  const Setting& credit = in.at("parallel.credit_bytes");
  const std::optional<std::uint64_t> bytes = parse_size(credit.text);
  if (!bytes && credit.text != "auto")
    fail(credit.mark, "parallel.credit_bytes: " + quote(credit.text) +
                          " is neither auto nor a size such as 16000000");
  if (bytes) out.credit_bytes = *bytes;
  out.own_credit = bytes.has_value();
}

constexpr std::pair<std::string_view, KeyHash> kHashes[] = {{"djb2", KeyHash::djb2},
                                                            {"naive", KeyHash::naive},
                                                            {"sdbm", KeyHash::sdbm},
                                                            {"built_in", KeyHash::built_in},
                                                            {"mixed", KeyHash::mixed}};

void read_byteps(const Settings& in, ParallelPlan& out) {
  out.best_split = in.text("parallel.mode") == "bound";
  out.server_schedule = in.boolean("parallel.server_schedule");
  for (const auto& [word, hash] : kHashes)
    if (word == in.text("parallel.key_hash")) out.key_hash = hash;
  out.asynchronous = in.boolean("parallel.asynchronous");
  out.server_timeout = in.micros("parallel.server_timeout_us");
  out.elastic = in.boolean("parallel.elastic");
}

void read_phub(const Settings& in, ParallelPlan& out) {
  out.optimizer = {static_cast<float>(in.number("parallel.learning_rate")),
                   static_cast<float>(in.number("parallel.momentum"))};
  out.rack_nics = in.small("parallel.rack_nics");
}

void read_schedulers(const Settings& in, ParallelPlan& out) {
  const std::string& fusion = in.text("parallel.fusion");
  out.fusion = fusion == "layers"         ? Fusion::layers
               : fusion == "waiting_time" ? Fusion::waiting_time
               : fusion == "none"         ? Fusion::none
                                          : Fusion::size;
  out.threshold_mb = in.number("parallel.threshold_mb");
  out.nearby_layers = in.small("parallel.nearby_layers");
  out.wait_ms = in.number("parallel.wait_ms");
  out.decouple_reduce = in.text("parallel.decouple") == "reduce";
  out.tune = in.text("parallel.tune") == "bo" && out.fusion == Fusion::size;
  const std::string& cost = in.text("parallel.allreduce_cost");
  out.allreduce_cost = cost == "spdkfac"     ? AllReduceCostModel::spdkfac
                       : cost == "10gbe"     ? AllReduceCostModel::ethernet_10g
                       : cost == "100gbrdma" ? AllReduceCostModel::rdma_100g
                                             : AllReduceCostModel::cluster;
  read_partitions(in, out);
}

template <typename T, std::size_t N>
T choice(const Settings& in, const char* key, const std::pair<std::string_view, T> (&words)[N]) {
  for (const auto& [word, value] : words)
    if (word == in.text(key)) return value;
  return words[0].second;  // the table has checked the word
}

void read_kfac(const Settings& in, KfacPlan& out) {
  using Launch = FactorLaunch;
  using Fuse = FactorFusion;
  using Placing = InversePlacement;
  using Send = SecondOrderSend;
  using Exclude = KfacExclude;
  out.variant = choice<KfacVariant>(in, "parallel.variant",
                                    {{"spd", KfacVariant::spd},
                                     {"ssgd", KfacVariant::ssgd},
                                     {"d", KfacVariant::d},
                                     {"mpd", KfacVariant::mpd},
                                     {"pad", KfacVariant::pad},
                                     {"dp", KfacVariant::dp}});
  out.launch = choice<Launch>(in, "parallel.factor_launch",
                              {{"auto", Launch::automatic},
                               {"overlap", Launch::overlap},
                               {"after_backward", Launch::after_backward}});
  out.fusion = choice<Fuse>(in, "parallel.factor_fusion",
                            {{"auto", Fuse::automatic},
                             {"none", Fuse::none},
                             {"layer", Fuse::layer},
                             {"threshold", Fuse::threshold},
                             {"optimal", Fuse::optimal}});
  out.placement = choice<Placing>(in, "parallel.inverse_placement",
                                  {{"auto", Placing::automatic},
                                   {"none", Placing::none},
                                   {"round_robin", Placing::round_robin},
                                   {"lbp", Placing::lbp},
                                   {"block", Placing::block}});
  out.send = choice<Send>(
      in, "parallel.second_order",
      {{"auto", Send::automatic}, {"inverses", Send::inverses}, {"gradients", Send::gradients}});
  out.cost = choice<KfacCost>(in, "parallel.kfac_cost",
                              {{"device", KfacCost::device},
                               {"rtx2080ti", KfacCost::rtx2080ti},
                               {"spdkfac", KfacCost::spdkfac}});
  out.exclude = choice<Exclude>(in, "parallel.exclude",
                                {{"nothing", Exclude::nothing},
                                 {"inverse_comm", Exclude::inverse_comm},
                                 {"inverses", Exclude::inverses},
                                 {"factor_comm", Exclude::factor_comm}});
  out.fusion_mb = in.number("parallel.factor_mb");
  out.local_below = static_cast<std::uint64_t>(in.integer("parallel.local_below"));
  out.factor_every = in.small("parallel.fac_update_freq");
  out.inverse_every = in.small("parallel.kfac_update_freq");
}

}  // namespace

ParallelPlan read_parallel(const Settings& in) {
  ParallelPlan out;
  for (const auto& [framework, word] : kFrameworks)
    if (word == in.text("parallel.framework")) out.framework = framework;
  out.dp = in.small("parallel.dp");
  out.bucket_cap_mb = in.number("parallel.bucket_cap_mb");
  out.first_bucket_mb = in.number("parallel.first_bucket_mb");
  out.micro_batch = in.small("parallel.micro_batch");
  const std::string& launch = in.text("parallel.launch");
  out.launch = launch == "flat"             ? Launch::flat
               : launch == "after_backward" ? Launch::after_backward
                                            : Launch::overlap;
  out.bucket_views = in.boolean("parallel.gradient_as_bucket_view");
  out.dp_replicate = in.small("parallel.dp_replicate");
  out.reshard = in.text("parallel.reshard_after_forward");
  out.prefetch = in.small("parallel.prefetch");
  out.random_tables = in.text("parallel.table_placement") == "random";
  out.row_wise_above = in.integer("parallel.row_wise_above");
  out.fusion_mb = in.number("parallel.fusion_mb");
  out.cycle_ms = in.number("parallel.cycle_ms");
  out.compiled = in.boolean("parallel.compile");
  out.foreach_optimizer = has_foreach_optimizer(in, out.framework);
  read_megatron(in, out);
  read_zero(in, out);
  read_schedulers(in, out);
  read_kfac(in, out.kfac);
  read_byteps(in, out);
  read_phub(in, out);
  return out;
}

}  // namespace ghostrank
