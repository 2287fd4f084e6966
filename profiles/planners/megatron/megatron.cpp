#include "profiles/planners/megatron/megatron.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "profiles/device/compute.h"
#include "profiles/planners/megatron/buffers.h"
#include "profiles/planners/megatron/groups.h"
#include "profiles/planners/megatron/passes.h"
#include "profiles/planners/pipeline/repeated_program.h"
#include "profiles/planners/pipeline/stage_actions.h"
#include "profiles/planners/pipeline/streams.h"

namespace ghostrank {
namespace {

struct StageBucket : GradientBucket {
  std::size_t tensor = 0;  // as Op::tensor
};
// Gradient buckets of a stage, of dense or of expert parameters, whose calls start together. Most
// groups have one bucket.
struct BucketGroup {
  bool expert = false;
  int first_unit = 0;  // the least of its buckets
  LayerPart first_module = LayerPart::qkv;
  std::vector<StageBucket> buckets;

  std::pair<int, LayerPart> first() const { return {first_unit, first_module}; }
};
struct Chunk {
  Part part;
  std::vector<Parameter> parameters;
  std::vector<BucketGroup> groups;  // those that the forward needs last come first
};

class StageWriter {
 public:
  StageWriter(const MegatronPlan& plan, const MegatronGroups& groups,
              std::span<const ExpertRouting> routing, int stage, int ep_rank,
              std::vector<GroupedCalls>& launches)
      : plan_(plan),
        parallel_(plan.spec->parallel),
        groups_(groups),
        launches_(launches),
        stage_(stage),
        chunks_(chunks_of(plan, stage)),
        streams_(streams_of(parallel_, groups, is_host_bound(plan))),
        stream_names_(names_of(streams_)),
        transfers_(plan.pipeline, stage, layout_of(plan.pipeline), stream_names_),
        out_(stream_names_),
        passes_(out_, plan, groups, streams_, routing, ep_rank, megatron_maxima(plan, stage)) {}

  Program write() {
    if (gathers_early()) launch_next_gather();
    const std::vector<Slot> slots = pipeline_slots(plan_.pipeline, stage_);
    // By chunk: its first slot, and its last one with weight gradients.
    std::vector<const Slot*> first(chunks_.size()), last(chunks_.size());
    for (const Slot& slot : slots) {
      const auto chunk = static_cast<std::size_t>(slot.chunk);
      if (!first[chunk]) first[chunk] = &slot;
      if (slot.pass != Pass::input_backward) last[chunk] = &slot;
    }
    const auto pass = [&](const Slot& slot) {
      const std::size_t chunk = slot.chunk;
      if (slot.pass == Pass::forward) return forward(slot, &slot == first[chunk]);
      const bool ends = &slot == last[chunk];
      backward(slot, ends && !aligns_reductions());
      if (aligns_reductions()) reduce_aligned(slot, ends);
    };
    for (const StageAction& action : stage_actions(plan_.pipeline, stage_, slots)) {
      const Slot& slot = slots[action.slot];
      if (action.kind == StageAction::Kind::exchange) {
        exchange(slots, action);
      } else if (action.kind == StageAction::Kind::await) {
        await(slots, action, false);
      } else if (slot.joined && streams_.ep != streams_.compute) {
        overlap([&] { pass(slot); }, [&] { pass(*(&slot + 1)); });
      } else {
        pass(slot);
        if (slot.joined) pass(*(&slot + 1));
      }
    }
    finish_gradients();
    out_.compute(streams_.compute, "optimizer", optimizer_time());
    if (parallel_.distributed_optimizer && !parallel_.overlap_param_gather) gather_all();
    average_loss();
    return out_.take();
  }

  // Returns the compute time of one pass of a chunk. The writer can write nothing after it.
  Picoseconds time_of(const Slot& slot) {
    slot.pass == Pass::forward ? forward(slot, false) : backward(slot, false);
    const Program program = out_.take();
    Picoseconds time = 0;
    for (const Op& op : program.streams[streams_.compute])
      if (op.kind == Op::Kind::compute) time += op.duration;
    return time;
  }
  Picoseconds optimizer_time() const;

 private:
  static std::vector<Chunk> chunks_of(const MegatronPlan& plan, int stage);
  static MegatronStreams streams_of(const ParallelPlan& parallel, const MegatronGroups& groups,
                                    bool host_bound);
  static std::vector<std::string> names_of(const MegatronStreams& streams);
  static PipelineStreams::Layout layout_of(const Pipeline& pipeline);

  void forward(const Slot& slot, bool first);
  void backward(const Slot& slot, bool last);
  void overlap(const std::function<void()>& one, const std::function<void()>& two);
  // What a stage sends after a pass, or receives before it.
  struct Transfer {
    std::uint16_t group = 0;
    std::size_t stream = 0;
    std::int32_t offset = 0;
    std::uint32_t label = 0;
    std::uint64_t elements = 0;
  };
  std::optional<Transfer> transfer(const Slot& slot, bool receives);
  void exchange(std::span<const Slot> slots, const StageAction& action);
  void launch(std::span<const Slot> slots, const StageAction& action, bool shapes);
  void await(std::span<const Slot> slots, const StageAction& action, bool shapes);
  void reduce(const BucketGroup& group);
  void reduce(std::size_t chunk);
  void reduce_aligned(const Slot& slot, bool ends);
  void gather(const BucketGroup& group);
  void launch_next_gather();
  void await_parameters(const Slot& slot, int unit, LayerPart module);
  void finish_gradients();
  void gather_all();
  void await_data_parallel();
  void average_loss();
  bool gathers_early() const {
    return parallel_.distributed_optimizer && parallel_.overlap_param_gather;
  }
  bool aligns_reductions() const {
    return plan_.pipeline.schedule == "interleaved" && parallel_.overlap_grad_reduce;
  }
  bool scatters() const {
    return parallel_.scatter_pipeline && plan_.tp > 1 && !plan_.sequence_parallel;
  }
  std::uint64_t shard(std::uint64_t numel, bool expert) const {
    return numel / plan_.holders(expert);
  }
  std::uint16_t ranks_of(const BucketGroup& group) const {
    return group.expert ? groups_.edp : groups_.dp;
  }
  // The number of the layer that a multi-token prediction module counts as.
  int mtp_layer(int module) const { return static_cast<int>(plan_.model.layers) + module; }
  std::size_t stream_of(const BucketGroup& group) const {
    return group.expert ? streams_.edp : streams_.dp;
  }

  const MegatronPlan& plan_;
  const ParallelPlan& parallel_;
  const MegatronGroups groups_;
  std::vector<GroupedCalls>& launches_;
  const int stage_;
  const std::vector<Chunk> chunks_;
  const MegatronStreams streams_;
  std::vector<std::string> stream_names_;
  const PipelineStreams transfers_;
  ProgramBuilder out_;
  PassWriter passes_;
  // Groups of buckets whose parameters are gathered, in the order in which the forward needs them:
  // how many are launched, how many awaited.
  std::size_t launched_ = 0, awaited_ = 0;
  // Of each backward so far, the chunk that it was the last of, where reductions are aligned.
  std::vector<std::optional<std::size_t>> ended_;
  std::set<std::size_t> reduced_;  // chunks
  // The ends of transfers that are under way, by slot and whether it receives; those on the compute
  // stream have none.
  std::map<std::pair<std::size_t, bool>, ProgramBuilder::Mark> under_way_;
};

std::vector<Chunk> StageWriter::chunks_of(const MegatronPlan& plan, int stage) {
  const ParallelPlan& parallel = plan.spec->parallel;
  std::vector<Chunk> out;
  std::size_t tensors = 0;
  for (int c = 0; c < plan.pipeline.chunks; ++c) {
    Chunk chunk;
    chunk.part = plan.parts[plan.pipeline.part(stage, c)];
    chunk.parameters = megatron_parameters(plan, chunk.part);
    for (const bool expert : {false, true}) {
      std::vector<Parameter> parameters;
      for (const Parameter& p : chunk.parameters)
        if (p.expert == expert) parameters.push_back(p);
      const std::uint64_t shards = plan.holders(expert);
      BufferLayout layout{parallel.distributed_optimizer, 0, shards};
      // Only the first part of the model is cut into buckets: its backward ends last, so that the
      // others have time for one bucket.
      if (parallel.overlap_grad_reduce && plan.pipeline.part(stage, c) == 0)
        layout.bucket_size =
            parallel.bucket_size > 0
                ? parallel.bucket_size
                : std::max<std::uint64_t>(
                      40'000'000, 1'000'000 * static_cast<std::uint64_t>(plan.dp * plan.cp));
      // From the second part of a stage on, all buckets are one group (partition_buckets).
      bool fresh = true;
      for (const GradientBucket& bucket : megatron_buckets(parameters, layout)) {
        if (fresh) chunk.groups.push_back({expert, bucket.first_unit, bucket.first_module, {}});
        BucketGroup& group = chunk.groups.back();
        std::tie(group.first_unit, group.first_module) =
            std::min(group.first(), {bucket.first_unit, bucket.first_module});
        group.buckets.push_back({bucket, ++tensors});
        fresh = c == 0;
      }
    }
    std::stable_sort(
        chunk.groups.begin(), chunk.groups.end(),
        [](const BucketGroup& a, const BucketGroup& b) { return a.first() > b.first(); });
    out.push_back(std::move(chunk));
  }
  return out;
}

MegatronStreams StageWriter::streams_of(const ParallelPlan& parallel, const MegatronGroups& groups,
                                        bool host_bound) {
  MegatronStreams streams;
  std::size_t next = 1;
  if (groups.tp != kNoGroup) streams.tp = next++;
  if (parallel.tp_comm_overlap && groups.tp != kNoGroup) streams.tp_send = next++;
  if (groups.cp != kNoGroup) {
    streams.cp = next++;
    streams.cp_send = next++;
  }
  if (groups.dp != kNoGroup) streams.dp = next++;
  if (groups.tp_ep != kNoGroup) streams.ep = next++;
  if (groups.edp != kNoGroup) streams.edp = next++;
  if (host_bound) streams.host = next++;
  return streams;
}

std::vector<std::string> StageWriter::names_of(const MegatronStreams& streams) {
  std::vector<std::string> names{"compute"};
  if (streams.tp > 0) names.emplace_back("tp");
  if (streams.tp_send > 0) names.emplace_back("tp send");
  if (streams.cp > 0) names.insert(names.end(), {"cp", "cp send"});
  if (streams.dp > 0) names.emplace_back("dp");
  if (streams.ep > 0) names.emplace_back("ep");
  if (streams.edp > 0) names.emplace_back("edp");
  if (streams.host > 0) names.emplace_back("host");
  return names;
}

// ---- Passes ----

PipelineStreams::Layout StageWriter::layout_of(const Pipeline& pipeline) {
  return pipeline.schedule == "interleaved" ? PipelineStreams::Layout::pairs
         : pipeline.is_bidirectional()      ? PipelineStreams::Layout::transfers
                                            : PipelineStreams::Layout::sends;
}

// Empty: the slot has no such transfer.
std::optional<StageWriter::Transfer> StageWriter::transfer(const Slot& slot, bool receives) {
  if (slot.pass == Pass::weight_backward) return std::nullopt;
  const bool forward = slot.pass == Pass::forward;
  const auto other = plan_.pipeline.neighbour(stage_, slot.chunk, forward == receives ? -1 : 1);
  if (!other || *other == stage_) return std::nullopt;
  const int part = plan_.pipeline.part(stage_, slot.chunk);
  // The earlier of the two parts.
  const int before = forward == receives ? part - 1 : part;
  const std::uint64_t tensors =
      plan_.mtp_stands_alone() && before >= plan_.mtp_part() ? 1 + plan_.model.mtp : 1;
  return Transfer{forward ? groups_.forward : groups_.backward,
                  receives && transfers_.layout() == PipelineStreams::Layout::sends
                      ? streams_.compute
                      : transfers_.stream(!receives, forward, *other),
                  *other - stage_,
                  out_.label(forward ? "activations of " : "gradients of ", slot.micro_batch),
                  tensors * plan_.hidden_states() /
                      (plan_.sequence_parallel || scatters() ? static_cast<std::uint64_t>(plan_.tp)
                                                             : std::uint64_t{1})};
}

// As megatron/core/pipeline_parallel/p2p_communication.py: if lengths differ, three sizes go first,
// in a batch that the stage waits for.
void StageWriter::exchange(std::span<const Slot> slots, const StageAction& action) {
  StageAction awaited{StageAction::Kind::await};
  if (action.waits != StageAction::Waits::nothing) awaited.receives = action.receives;
  if (action.waits == StageAction::Waits::all) awaited.sends = action.sends;
  if (plan_.mtp_stands_alone()) {
    launch(slots, action, true);
    await(slots, action.waits == StageAction::Waits::receives ? awaited : action, true);
  }
  launch(slots, action, false);
  await(slots, awaited, false);
}

void StageWriter::launch(std::span<const Slot> slots, const StageAction& action, bool shapes) {
  // A transfer of interleaved stages is an isend of its own; all others are sent in batches, within
  // the stages' group. DualPipe's release sends within all ranks, which are its stages alone.
  const Op::Within within =
      transfers_.layout() == PipelineStreams::Layout::transfers          ? Op::Within::unknown
      : transfers_.layout() == PipelineStreams::Layout::pairs && !shapes ? Op::Within::pair
                                                                         : Op::Within::group;
  const DataType type = shapes ? DataType::int64 : plan_.activations;
  const auto one = [&](std::size_t slot, bool receives) {
    const std::optional<Transfer> t = transfer(slots[slot], receives);
    if (!t) return;
    const std::uint32_t what = shapes ? out_.label("shape") : t->label;
    const std::uint64_t count = shapes ? 3 : t->elements;
    out_.after(t->stream, streams_.compute);
    if (receives)
      out_.recv(t->stream, what, t->group, t->offset, type, count, within);
    else
      out_.send(t->stream, what, t->group, t->offset, type, count, within);
    if (transfers_.layout() != PipelineStreams::Layout::sends)
      under_way_.emplace(std::pair(slot, receives), out_.mark(t->stream, streams_.compute));
  };
  for (const std::size_t slot : action.sends) one(slot, false);
  for (const std::size_t slot : action.receives) one(slot, true);
}

void StageWriter::await(std::span<const Slot> slots, const StageAction& action, bool shapes) {
  const auto one = [&](std::size_t slot, bool receives) {
    const std::optional<Transfer> t = transfer(slots[slot], receives);
    if (!t) return;
    if (const auto end = under_way_.extract({slot, receives}); !end.empty())
      out_.wait(end.mapped());
    else
      out_.after(streams_.compute, t->stream);
    if (!receives || shapes || !scatters()) return;
    out_.after(streams_.tp, streams_.compute);
    out_.collective(streams_.tp, "parts of a stage", Func::all_gather, groups_.tp,
                    plan_.activations, t->elements);
    out_.after(streams_.compute, streams_.tp);
  };
  for (const std::size_t slot : action.sends) one(slot, false);
  for (const std::size_t slot : action.receives) one(slot, true);
}

void StageWriter::forward(const Slot& slot, bool first) {
  const Part& part = chunks_[slot.chunk].part;
  const int behind = part.embedding + part.layers;  // the first unit after the layers
  passes_.begin(Pass::forward, slot.micro_batch, first);
  for (int unit = 0; unit < part.units(); ++unit) {
    if (unit == behind) passes_.layers_forward_ended();
    if (first && gathers_early()) {
      await_parameters(slot, unit, LayerPart::qkv);
      passes_.before([=, this](LayerPart module) { await_parameters(slot, unit, module); });
    }
    if (part.embedding && unit == 0)
      passes_.embedding_forward();
    else if (part.head && unit == part.units() - 1)
      passes_.head_forward();
    else if (const int layer = unit - part.embedding; layer >= part.layers)
      passes_.mtp_forward(mtp_layer(layer - part.layers));
    else
      passes_.layer_forward(part.first_layer + layer);
  }
  if (part.units() == behind) passes_.layers_forward_ended();
  passes_.before(nullptr);
}

void StageWriter::backward(const Slot& slot, bool last) {
  const Chunk& chunk = chunks_[slot.chunk];
  passes_.begin(slot.pass, slot.micro_batch);
  for (int unit = chunk.part.units() - 1; unit >= 0; --unit) {
    if (chunk.part.head && unit == chunk.part.units() - 1)
      passes_.head_backward();
    else if (chunk.part.embedding && unit == 0)
      passes_.embedding_backward();
    else if (const int layer = unit - chunk.part.embedding; layer >= chunk.part.layers)
      passes_.mtp_backward(mtp_layer(layer - chunk.part.layers));
    else
      passes_.layer_backward(chunk.part.first_layer + layer);
    if (chunk.part.layers > 0 && unit == chunk.part.embedding) passes_.layers_backward_ended();
    if (!last || !parallel_.overlap_grad_reduce) continue;
    for (const BucketGroup& group : chunk.groups)
      if (group.first_unit == unit) reduce(group);
  }
  if (last && parallel_.overlap_grad_reduce) reduced_.insert(slot.chunk);
}

// Alternates two passes: each computes while rows of the other's experts are in flight.
void StageWriter::overlap(const std::function<void()>& one, const std::function<void()>& two) {
  const auto script_of = [&](const std::function<void()>& pass) {
    out_.begin_script();
    pass();
    return out_.end_script();
  };
  const ProgramBuilder::Script first = script_of(one), second = script_of(two);
  out_.take_turns(first, second, streams_.compute, streams_.ep);
}

// ---- Gradients and parameters ----

void StageWriter::reduce(const BucketGroup& group) {
  if (ranks_of(group) == kNoGroup) return;
  const bool scatter = parallel_.distributed_optimizer;
  out_.after(stream_of(group), streams_.compute);
  out_.begin_launch();
  for (const StageBucket& bucket : group.buckets)
    out_.collective(stream_of(group), "gradients",
                    scatter ? Func::reduce_scatter : Func::all_reduce, ranks_of(group),
                    plan_.gradients, scatter ? shard(bucket.numel, group.expert) : bucket.numel, 0,
                    bucket.tensor);
  out_.end_launch(launches_);
}

void StageWriter::reduce(std::size_t chunk) {
  for (const BucketGroup& group : chunks_[chunk].groups) reduce(group);
  reduced_.insert(chunk);
}

// After a backward: reduces the chunk whose last one was as many backwards ago as there are stages
// before this one, so that the stages reduce it at about the same time (align_grad_reduce). Those
// that are left wait for the end of the pipeline.
void StageWriter::reduce_aligned(const Slot& slot, bool ends) {
  ended_.push_back(ends ? std::optional<std::size_t>(slot.chunk) : std::nullopt);
  const auto before = static_cast<std::size_t>(stage_);
  if (ended_.size() <= before) return;
  if (const auto chunk = ended_[ended_.size() - 1 - before]) reduce(*chunk);
}

void StageWriter::gather(const BucketGroup& group) {
  if (ranks_of(group) == kNoGroup) return;
  out_.after(stream_of(group), streams_.compute);
  out_.begin_launch();
  for (const StageBucket& bucket : group.buckets)
    out_.collective(stream_of(group), "parameters", Func::all_gather, ranks_of(group),
                    plan_.activations, shard(bucket.numel, group.expert));
  out_.end_launch(launches_);
}

// Forward order: chunk by chunk, the groups from the last to the first.
void StageWriter::launch_next_gather() {
  std::size_t index = launched_++;
  for (const Chunk& chunk : chunks_) {
    if (index < chunk.groups.size()) return gather(chunk.groups[chunk.groups.size() - 1 - index]);
    index -= chunk.groups.size();
  }
}

// Before the first forward of a module: waits for its groups of buckets, and after each wait
// launches the next gather.
void StageWriter::await_parameters(const Slot& slot, int unit, LayerPart module) {
  std::size_t before = 0;  // groups of earlier chunks
  for (int c = 0; c < slot.chunk; ++c) before += chunks_[c].groups.size();
  const Chunk& chunk = chunks_[slot.chunk];
  for (;;) {
    const std::size_t index = awaited_ - before;
    if (awaited_ < before || index >= chunk.groups.size()) return;
    const BucketGroup& group = chunk.groups[chunk.groups.size() - 1 - index];
    if (group.first() > std::pair{unit, module}) return;
    if (ranks_of(group) != kNoGroup) out_.after(streams_.compute, stream_of(group));
    ++awaited_;
    launch_next_gather();
  }
}

// In the order of Megatron's finalize_model_grads: data-parallel gradients, gradients that sequence
// parallelism left partial, the tied embedding, rows per expert; then the optimizer's: with fp16
// whether the loss scale was too large for some gradient, and the norm.
void StageWriter::finish_gradients() {
  std::uint64_t partial = 0, tied = 0, routed_layers = 0;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const Chunk& chunk = chunks_[c];
    for (int i = 0; i < chunk.part.layers; ++i)
      routed_layers +=
          plan_.model.has_experts(static_cast<std::uint64_t>(chunk.part.first_layer + i));
    for (int i = 0; i < chunk.part.mtp; ++i)
      routed_layers += plan_.model.has_experts(static_cast<std::uint64_t>(mtp_layer(i)));
    if (!reduced_.contains(c)) reduce(c);
    for (const Parameter& p : chunk.parameters) {
      if (p.partial) partial += p.numel;
      if (p.tied) tied += p.numel;
    }
  }
  await_data_parallel();
  if (plan_.sequence_parallel && partial > 0) {
    out_.after(streams_.tp, streams_.compute);
    out_.collective(streams_.tp, "norm gradients", Func::all_reduce, groups_.tp, plan_.gradients,
                    partial);
    out_.after(streams_.compute, streams_.tp);
  }
  if (tied > 0 && groups_.embedding != kNoGroup)
    out_.collective(streams_.compute, "embedding gradients", Func::all_reduce, groups_.embedding,
                    plan_.gradients, tied);
  if (groups_.replicas != kNoGroup && routed_layers > 0)
    out_.collective(streams_.compute, "rows per expert", Func::all_reduce, groups_.replicas,
                    DataType::float32, routed_layers * plan_.model.experts.count);
  const auto agree = [&](const char* what, Reduction reduction) {
    for (const std::uint16_t group : {groups_.norm, groups_.expert_norm})
      if (group != kNoGroup)
        out_.collective(streams_.compute, what, Func::all_reduce, group, DataType::float32, 1, 0, 0,
                        reduction);
  };
  if (plan_.activations == DataType::float16) agree("overflow", Reduction::max);
  agree("gradient norm", Reduction::sum);
}

void StageWriter::gather_all() {
  for (const Chunk& chunk : chunks_)
    for (const BucketGroup& group : chunk.groups) gather(group);
  await_data_parallel();
}

void StageWriter::await_data_parallel() {
  for (const std::size_t stream : {streams_.dp, streams_.edp})
    if (stream != streams_.compute) out_.after(streams_.compute, stream);
}

// Averages the loss and the number of tokens, on the last stage.
void StageWriter::average_loss() {
  const bool last = std::any_of(chunks_.begin(), chunks_.end(),
                                [](const Chunk& chunk) { return chunk.part.head; });
  if (!last || groups_.dp == kNoGroup) return;
  out_.after(streams_.dp, streams_.compute);
  out_.collective(streams_.dp, "loss", Func::all_reduce, groups_.dp, DataType::float32, 2);
  out_.after(streams_.compute, streams_.dp);
}

Picoseconds StageWriter::optimizer_time() const {
  std::uint64_t numel = 0;
  for (const Chunk& chunk : chunks_)
    for (const Parameter& p : chunk.parameters)
      numel += parallel_.distributed_optimizer ? shard(p.numel, p.expert) : p.numel;
  return ComputeModel(*plan_.spec).optimizer(static_cast<double>(numel));
}

// Time of the pipeline's compute, with its bubble, and of the optimizer. 0 (unknown) for dualpipe,
// and with uneven routing, because the ranks of a stage then differ.
Picoseconds least_time(const MegatronPlan& plan, const MegatronGroups& groups) {
  if (plan.is_uneven()) return 0;
  const Pipeline shortest = shortened(plan.pipeline, kRounds * plan.pp);  // has every pass
  std::map<std::pair<int, Pass>, Picoseconds> times;
  std::vector<GroupedCalls> launches;
  Picoseconds optimizer = std::numeric_limits<Picoseconds>::max();
  for (int stage = 0; stage < plan.pp; ++stage) {
    const auto writer = [&] { return StageWriter(plan, groups, {}, stage, 0, launches); };
    optimizer = std::min(optimizer, writer().optimizer_time());
    for (const Slot& slot : pipeline_slots(shortest, stage)) {
      const std::pair key{plan.pipeline.part(stage, slot.chunk), slot.pass};
      if (!times.contains(key)) times[key] = writer().time_of(slot);
    }
  }
  const auto time = [&](int part, Pass pass) { return times.at({part, pass}); };
  const Picoseconds passes = pipeline_time(plan.pipeline, time);
  return passes > 0 ? passes + optimizer : 0;
}

double model_flops(const MegatronPlan& plan, double samples) {
  return 3 * plan.spec->model->forward_flops() * samples;
}

}  // namespace

Workload plan_megatron(const JobSpec& spec) {
  const MegatronPlan plan = megatron_plan(spec);
  Workload workload;
  workload.ranks = plan.ranks();
  const MegatronGroups groups = megatron_groups(plan, workload);
  const std::vector<ExpertRouting> routing = megatron_routing(plan, groups.ep_nodes, workload);
  const std::size_t per_stage = plan.roles_per_stage();
  const std::size_t roles = plan.pp * per_stage;
  const auto write = [&](std::size_t role, int micro_batches) {
    MegatronPlan of_length = plan;
    of_length.pipeline.micro_batches = micro_batches;
    return StageWriter(of_length, groups, routing, static_cast<int>(role / per_stage),
                       static_cast<int>(role % per_stage), workload.launches)
        .write();
  };
  for (Program& program : repeated_programs(spec, plan.pipeline, roles, write)) {
    const std::size_t role = workload.roles.size();
    std::string name = "stage " + std::to_string(role / per_stage);
    if (per_stage > 1) name += " ep " + std::to_string(role % per_stage);
    workload.roles.push_back({std::move(name), {std::move(program)}});
  }
  workload.samples_per_iteration =
      static_cast<double>(plan.pipeline.micro_batches) * plan.micro_batch * plan.dp;
  workload.flops_per_iteration = model_flops(plan, workload.samples_per_iteration);
  workload.least = least_time(plan, groups);
  return workload;
}

}  // namespace ghostrank
