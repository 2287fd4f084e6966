#include "profiles/planners/fsdp/fsdp.h"

#include <algorithm>
#include <optional>
#include <span>

#include "profiles/device/compute.h"
#include "profiles/model/model.h"
#include "profiles/planners/fsdp/layers.h"
#include "profiles/planners/fsdp/mesh.h"
#include "profiles/planners/fsdp/units.h"
#include "profiles/planners/pipeline/layer_split.h"
#include "profiles/planners/pipeline/repeated_program.h"
#include "profiles/planners/pipeline/streams.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/tied_table.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr double kStored = 4;             // bytes of a shard's element
constexpr std::size_t kChunksAtOnce = 3;  // chunks whose parameters torch's pipeline runtime keeps

using Layers = std::vector<std::size_t>;  // layers of the model in the order of their use

struct Streams {
  std::size_t replicate = 0, tp = 0, ep = 0, cp = 0, cp_send = 0;
  std::vector<std::string> names{"compute", "comm"};
};

Streams streams_of(const FsdpMesh& mesh) {
  Streams out;
  const auto add = [&](bool used, const char* name) {
    if (used) out.names.emplace_back(name);
    return used ? out.names.size() - 1 : kCompute;
  };
  out.replicate = add(mesh.replicate > 1, "replicate");
  out.tp = add(mesh.tp > 1, "tp");
  out.ep = add(mesh.ep > 1, "ep");
  out.cp = add(mesh.cp > 1, "cp");
  out.cp_send = add(mesh.cp > 1, "cp send");
  return out;
}

class FsdpWriter {
 public:
  FsdpWriter(const JobSpec& spec, const FsdpMesh& mesh, std::vector<Layers> chunks, int stage)
      : spec_(spec),
        mesh_(mesh),
        model_(*spec.model),
        chunks_(std::move(chunks)),
        stage_(stage),
        times_(step_times(spec)),
        device_(computes_by_kernels(spec) ? std::optional<ComputeModel>(spec) : std::nullopt),
        units_(fsdp_units(spec, mesh)),
        tied_(head_has_embedding(model_)),
        streams_(streams_of(mesh)),
        stream_names_(streams_.names),
        sends_(mesh.pipeline, stage, PipelineStreams::Layout::sends, stream_names_),
        out_(stream_names_),
        layers_(spec, mesh, times_, out_,
                {streams_.tp, streams_.ep, streams_.cp, streams_.cp_send}),
        parameters_(units_.size()) {}

  Program write() {
    if (mesh_.pipeline.stages > 1) {
      pipelined();
      for (const std::size_t stream : sends_.streams()) out_.after(kCompute, stream);
    } else {
      for (int i = 0; i < mesh_.pipeline.micro_batches; ++i) one_micro_batch();
    }
    out_.after(kCompute, kComm);
    if (mesh_.replicate > 1) out_.after(kCompute, streams_.replicate);
    finish();
    return out_.take();
  }

 private:
  // State of a unit's gathered parameters. The next user waits for a gather in flight.
  struct Parameters {
    bool here = false;
    std::optional<ProgramBuilder::Mark> coming;
  };

  void one_micro_batch();
  void pipelined();
  void run(const Slot& slot);
  void run_in_turns(const Slot& one, const Slot& two);
  struct Transfer {
    std::uint16_t group = 0;
    std::int32_t offset = 0;
    std::uint32_t label = 0;
    std::size_t stream = 0;
  };
  std::optional<Transfer> transfer(const Slot& slot, bool receives);
  void send(const Slot& slot);
  void receive(const Slot& slot);
  void await_send(const Slot& slot);
  // torch's runtime waits for the sends of the other schedules at the end of the step.
  bool awaits_sends() const { return mesh_.pipeline.schedule == "1f1b"; }
  std::uint64_t passed_elements() const;
  void keep_chunks(std::span<const Slot> ahead);

  Picoseconds moving(double bytes) const;
  std::size_t unit_of(std::size_t layer) const {
    return tied_ && layer + 1 == units_.size() ? 0 : layer;
  }
  void gather(std::size_t number);
  void fetch(const Layers& order, std::size_t at);
  Reduction averaged() const;
  void scatter(std::size_t unit);
  void reduce(std::size_t stream, const char* what, std::uint16_t group, DataType type,
              std::uint64_t count, Reduction reduction = Reduction::sum);
  void finish();
  void balance_experts();
  Picoseconds optimizer_time() const;
  bool keeps(std::size_t layer) const;
  std::uint64_t sum(std::uint64_t FsdpUnit::*of) const {
    std::uint64_t out = 0;
    for (const Layers& chunk : chunks_)
      for (const std::size_t layer : chunk) out += units_[layer].*of;
    return out;
  }

  const JobSpec& spec_;
  const FsdpMesh& mesh_;
  const Model& model_;
  const std::vector<Layers> chunks_;
  const int stage_;
  const StepTimes times_;
  const std::optional<ComputeModel> device_;  // empty: copies take no time
  const std::vector<FsdpUnit> units_;
  const bool tied_;  // the head is of the embedding's unit
  const Streams streams_;
  std::vector<std::string> stream_names_;
  const PipelineStreams sends_;
  ProgramBuilder out_;
  FsdpLayers layers_;
  std::vector<Parameters> parameters_;  // by unit
  std::vector<int> kept_;               // chunks whose parameters the pipeline runtime has gathered
};

// ---- Passes ----

// Reduces gradients layer by layer during the backward of every micro-batch. A tied embedding stays
// until the head, and its gradients are complete after its own backward.
void FsdpWriter::one_micro_batch() {
  const Layers& forward = chunks_.front();
  const Layers backward(forward.rbegin(), forward.rend());
  for (std::size_t i = 0; i < forward.size(); ++i) {
    fetch(forward, i);
    layers_.forward(forward[i]);
    if (tied_ && i == 0) continue;
    parameters_[unit_of(forward[i])].here = keeps(forward[i]);
  }
  for (std::size_t i = 0; i < backward.size(); ++i) {
    fetch(backward, i);
    layers_.backward(backward[i], Pass::backward);
    if (unit_of(backward[i]) != backward[i]) continue;
    parameters_[backward[i]].here = false;
    scatter(backward[i]);
  }
}

// Plays slots in order; a joined pair sends after both of its slots. Reduces a chunk's gradients
// after the chunk's last backward.
void FsdpWriter::pipelined() {
  const std::vector<Slot> slots = pipeline_slots(mesh_.pipeline, stage_);
  std::vector<int> left(chunks_.size(), mesh_.pipeline.micro_batches);
  for (std::size_t begin = 0, end = 0; begin < slots.size(); begin = end) {
    end = begin + (slots[begin].joined ? 2 : 1);
    keep_chunks(std::span(slots).subspan(begin));
    const bool in_turns = slots[begin].joined && mesh_.ep > 1 && spec_.parallel.reshard != "always";
    if (in_turns) {
      run_in_turns(slots[begin], slots[begin + 1]);
    } else {
      for (std::size_t i = begin; i < end; ++i) {
        // Where forwards and backwards alternate, 1f1b sends and receives in one batch.
        const bool batch = i > 0 && awaits_sends() && slots[i - 1].pass != slots[i].pass;
        receive(slots[i]);
        if (batch) await_send(slots[i - 1]);
        run(slots[i]);
      }
    }
    for (std::size_t i = begin; i < end; ++i) send(slots[i]);
    for (std::size_t i = begin; i < end; ++i) {
      const auto chunk = static_cast<std::size_t>(slots[i].chunk);
      const bool weights =
          slots[i].pass == Pass::backward || slots[i].pass == Pass::weight_backward;
      if (!weights || --left[chunk] > 0) continue;
      for (const std::size_t layer : chunks_[chunk]) scatter(layer);
    }
  }
}

// Keeps parameters after a backward, so that the next forward finds them. The first part of the
// model has no input gradient, so its whole backward runs in the weight pass.
void FsdpWriter::run(const Slot& slot) {
  const Layers& forward = chunks_[slot.chunk];
  if (slot.pass == Pass::forward) {
    for (std::size_t i = 0; i < forward.size(); ++i) {
      fetch(forward, i);
      layers_.forward(forward[i]);
      parameters_[forward[i]].here = keeps(forward[i]);
    }
    return;
  }
  const bool first = mesh_.pipeline.part(stage_, slot.chunk) == 0;
  if (first && slot.pass == Pass::input_backward) return;
  const Pass pass = first ? Pass::backward : slot.pass;
  const Layers backward(forward.rbegin(), forward.rend());
  for (std::size_t i = 0; i < backward.size(); ++i) {
    if (pass != Pass::weight_backward) fetch(backward, i);
    layers_.backward(backward[i], pass);
  }
}

// Alternates a forward and a backward: each computes while rows of the other's experts are in
// flight. Gathers all their parameters first.
void FsdpWriter::run_in_turns(const Slot& one, const Slot& two) {
  for (const Slot* slot : {&one, &two}) {
    const Layers& layers = chunks_[slot->chunk];
    for (std::size_t i = 0; i < layers.size(); ++i) fetch(layers, i);
    receive(*slot);
  }
  const auto script_of = [&](const Slot& slot) {
    out_.begin_script();
    run(slot);
    return out_.end_script();
  };
  const ProgramBuilder::Script first = script_of(one), second = script_of(two);
  out_.take_turns(first, second, kCompute, streams_.ep);
}

// Hidden states for the next part, or their gradients for the one before. Empty: the slot has no
// such transfer.
std::optional<FsdpWriter::Transfer> FsdpWriter::transfer(const Slot& slot, bool receives) {
  if (slot.pass == Pass::weight_backward) return std::nullopt;
  const bool forward = slot.pass == Pass::forward;
  const auto other = mesh_.pipeline.neighbour(stage_, slot.chunk, forward == receives ? -1 : 1);
  if (!other || *other == stage_) return std::nullopt;
  return Transfer{forward ? mesh_.forward_group : mesh_.backward_group, *other - stage_,
                  out_.label(forward ? "activations of " : "gradients of ", slot.micro_batch),
                  receives ? kCompute : sends_.stream(true, forward, *other)};
}

std::uint64_t FsdpWriter::passed_elements() const {
  const Transformer& model = *model_.transformer;
  return spec_.parallel.micro_batch * model.sequence * model.hidden / (mesh_.tp * mesh_.cp);
}

void FsdpWriter::receive(const Slot& slot) {
  if (const auto t = transfer(slot, true))
    out_.recv(kCompute, t->label, t->group, t->offset, spec_.precision.parameters,
              passed_elements());
}

// A send of 1f1b leaves when the one before it has ended.
void FsdpWriter::send(const Slot& slot) {
  const auto t = transfer(slot, false);
  if (!t) return;
  if (awaits_sends()) out_.after(kCompute, t->stream);
  out_.after(t->stream, kCompute);
  out_.send(t->stream, t->label, t->group, t->offset, spec_.precision.parameters,
            passed_elements());
}

void FsdpWriter::await_send(const Slot& slot) {
  if (const auto t = transfer(slot, false)) out_.after(kCompute, t->stream);
}

// If a stage has several chunks, torch's runtime gathers the parameters of the next kChunksAtOnce
// of them, a chunk at a time, and frees those of the others.
void FsdpWriter::keep_chunks(std::span<const Slot> ahead) {
  if (chunks_.size() == 1) return;
  std::vector<int> next;
  for (const Slot& slot : ahead) {
    if (std::find(next.begin(), next.end(), slot.chunk) != next.end()) continue;
    next.push_back(slot.chunk);
    if (next.size() == kChunksAtOnce) break;
  }
  for (const int chunk : kept_)
    if (std::find(next.begin(), next.end(), chunk) == next.end())
      for (const std::size_t layer : chunks_[chunk]) parameters_[layer].here = false;
  for (const int chunk : next)
    if (std::find(kept_.begin(), kept_.end(), chunk) == kept_.end())
      for (const std::size_t layer : chunks_[chunk]) gather(layer);
  kept_ = std::move(next);
}

// ---- Parameters ----

bool FsdpWriter::keeps(std::size_t layer) const {
  const std::string& policy = spec_.parallel.reshard;
  if (policy != "default") return policy == "never";
  return spec_.parallel.framework == Framework::torchtitan &&
         (mesh_.pipeline.stages > 1 || layer + 1 == units_.size());
}

Picoseconds FsdpWriter::moving(double bytes) const {
  return device_ ? device_->on_device(device_->kernels()->memory(bytes), "copies of a unit") : 0;
}

// A unit without parameters, as in a measured model, needs no gather. Shards are cast to the type
// of products, and copied next to each other.
void FsdpWriter::gather(std::size_t number) {
  Parameters& parameters = parameters_[number];
  if (parameters.here) return;
  parameters.here = true;
  const FsdpUnit& unit = units_[number];
  const bool dense = mesh_.shard > 1 && unit.shard > 0,
             experts = mesh_.experts_shard > 1 && unit.experts_shard > 0;
  if (!dense && !experts) return;
  const std::string& name = model_.layers[number].name;
  const double sent = bytes_of(spec_.precision.parameters),
               cast = sent < kStored ? kStored + sent : 0;
  out_.after(kComm, kCompute);
  const std::uint64_t shards = (dense ? unit.shard : 0) + (experts ? unit.experts_shard : 0);
  out_.compute(kComm, "pack " + name, moving((cast + 2 * sent) * static_cast<double>(shards)));
  if (dense)
    out_.collective(kComm, "gather " + name, Func::all_gather, mesh_.shard_group,
                    spec_.precision.parameters, unit.shard);
  if (experts)
    out_.collective(kComm, "gather experts of " + name, Func::all_gather, mesh_.experts_shard_group,
                    spec_.precision.parameters, unit.experts_shard);
  parameters.coming = out_.mark(kComm, kCompute);
}

// Before a use: makes the unit's parameters available, and starts the gathers of the next uses.
// After a gather the parameters are copied into their tensors.
void FsdpWriter::fetch(const Layers& order, std::size_t at) {
  const std::size_t number = unit_of(order[at]);
  gather(number);
  if (auto& coming = parameters_[number].coming; coming) {
    out_.wait(*coming);
    coming.reset();
    const FsdpUnit& unit = units_[number];
    const std::uint64_t whole =
        (mesh_.shard > 1 ? unit.shard * mesh_.shard : 0) +
        (mesh_.experts_shard > 1 ? unit.experts_shard * mesh_.experts_shard : 0);
    out_.compute(kCompute, "unpack " + model_.layers[number].name,
                 moving(2 * bytes_of(spec_.precision.parameters) * static_cast<double>(whole)));
  }
  const std::size_t ahead = spec_.parallel.prefetch;
  for (std::size_t i = at + 1; i < order.size() && i <= at + ahead; ++i) gather(unit_of(order[i]));
}

// ---- Gradients ----

// FSDP2 lets NCCL divide sums of fp32 and bf16, and divides sums of fp16 itself, lest they
// overflow.
Reduction FsdpWriter::averaged() const {
  const DataType type = spec_.precision.gradients;
  return type == DataType::float32 || type == DataType::bfloat16 ? Reduction::avg : Reduction::sum;
}

// Gradients have the type of products. They are copied next to each other, by shards, in the type
// in which they are reduced: a narrower one takes a copy of its own.
void FsdpWriter::scatter(std::size_t unit) {
  const std::string& name = model_.layers[unit].name;
  const double computed = bytes_of(spec_.precision.parameters),
               reduced = bytes_of(spec_.precision.gradients),
               packing = computed + reduced + (reduced < computed ? 2 * computed : 0);
  const auto reduce_shard = [&](const std::string& what, int shards, std::uint16_t group,
                                std::uint64_t shard, std::size_t tensor) {
    if (shard == 0) return;
    if (shards > 1)
      out_.compute(kCompute, "pack gradients of " + what,
                   moving(packing * static_cast<double>(shard) * shards));
    out_.after(kComm, kCompute);
    if (shards > 1)
      out_.collective(kComm, "scatter " + what, Func::reduce_scatter, group,
                      spec_.precision.gradients, shard, 0, tensor, averaged());
    if (mesh_.replicate == 1) return;
    out_.after(streams_.replicate, kComm);
    out_.collective(streams_.replicate, "replicas of " + what, Func::all_reduce,
                    mesh_.replica_group, spec_.precision.gradients, shard, 0, tensor, averaged());
  };
  reduce_shard(name, mesh_.shard, mesh_.shard_group, units_[unit].shard, unit + 1);
  reduce_shard("experts of " + name, mesh_.experts_shard, mesh_.experts_shard_group,
               units_[unit].experts_shard, units_.size() + unit + 1);
}

void FsdpWriter::reduce(std::size_t stream, const char* what, std::uint16_t group, DataType type,
                        std::uint64_t count, Reduction reduction) {
  if (count == 0) return;
  out_.after(stream, kCompute);
  out_.collective(stream, what, Func::all_reduce, group, type, count, 0, 0, reduction);
  out_.after(kCompute, stream);
}

// In this order: gradients of tensors that every tensor-parallel rank has whole; the norm of every
// tensor's gradient over each dimension, and the total norm over the stages; rows per expert for
// the routers' biases; the optimizer on the shards; the loss, once its mean and once its maximum.
void FsdpWriter::finish() {
  const std::uint64_t norms = sum(&FsdpUnit::tensors), experts = sum(&FsdpUnit::experts_tensors);
  // Without FSDP norm gradients stay partial: the norm, its clipping and the optimizer sum them.
  const bool shards = mesh_.shard > 1;
  for (int i = 0; mesh_.tp > 1 && i < (shards ? 1 : 3); ++i)
    reduce(streams_.tp, "norm gradients", mesh_.tensor_group,
           shards ? spec_.precision.parameters : DataType::float32, sum(&FsdpUnit::whole));
  if (mesh_.experts_shard > 1 && mesh_.ep > 1)
    reduce(kComm, "gradient norm of experts", mesh_.experts_shard_group, DataType::float32,
           experts);
  if (mesh_.ep > 1)
    reduce(streams_.ep, "gradient norm of experts", mesh_.expert_group, DataType::float32, experts);
  if (mesh_.shard > 1) reduce(kComm, "gradient norm", mesh_.shard_group, DataType::float32, norms);
  if (mesh_.tp > 1)
    reduce(streams_.tp, "gradient norm", mesh_.tensor_group, DataType::float32, norms);
  if (mesh_.pipeline.stages > 1)
    reduce(kComm, "gradient norm", mesh_.forward_group, DataType::float32, 1);
  balance_experts();
  out_.compute(kCompute, "optimizer", optimizer_time());
  if (mesh_.shard * mesh_.replicate == 1) return;
  for (const Reduction reduction : {Reduction::sum, Reduction::max})
    reduce(kComm, "loss", mesh_.data_group, DataType::float32, 1, reduction);
}

// Blocks the compute stream, as in TorchTitan.
void FsdpWriter::balance_experts() {
  if (!model_.transformer || !model_.transformer->experts.router_bias ||
      spec_.parallel.framework != Framework::torchtitan)
    return;
  std::uint64_t layers = 0;
  for (const Layers& chunk : chunks_)
    for (const std::size_t layer : chunk) layers += layers_.has_experts(layer);
  const std::uint64_t counts = layers * model_.transformer->experts.count;
  if (mesh_.ep > 1 && mesh_.tp > 1)
    reduce(streams_.tp, "rows per expert", mesh_.tensor_group, DataType::float32, counts);
  if (mesh_.shard * mesh_.replicate > 1)
    reduce(kComm, "rows per expert", mesh_.data_group, DataType::float32, counts);
}

// Time for this rank's share of all parameters, and that before it.
Picoseconds FsdpWriter::optimizer_time() const {
  const double held = static_cast<double>(sum(&FsdpUnit::shard) + sum(&FsdpUnit::experts_shard));
  const double all = static_cast<double>(std::max<std::uint64_t>(model_.parameters(), 1));
  const Picoseconds whole = times_.optimizer - model_.before_optimizer;
  return model_.before_optimizer +
         static_cast<Picoseconds>(static_cast<double>(whole) * held / all);
}

}  // namespace

Workload plan_fsdp(const JobSpec& spec) {
  Workload workload;
  const FsdpMesh mesh = fsdp_mesh(spec, workload);
  const auto write = [&](std::size_t role, int micro_batches) {
    const auto stage = static_cast<int>(role);
    FsdpMesh of_length = mesh;
    of_length.pipeline.micro_batches = micro_batches;
    return FsdpWriter(spec, of_length, fsdp_chunks(spec, of_length.pipeline, stage), stage).write();
  };
  const std::size_t stages = mesh.pipeline.stages;
  for (Program& program : repeated_programs(spec, mesh.pipeline, stages, write)) {
    std::string name = stages > 1 ? "stage " + std::to_string(workload.roles.size()) : "fsdp";
    workload.roles.push_back({std::move(name), {std::move(program)}});
  }
  return workload;
}

}  // namespace ghostrank
