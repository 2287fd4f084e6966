// The forward and the backward of a layer under TorchTitan's tensor, context and expert
// parallelism, as ops; without any of these a layer is one compute.
//
//   half of a layer, tensor parallel   compute |    |...|    |
//                                      tp      |-AG-|   |-RS-|        backward the same
//   routed experts                     compute |      |   |experts|   |
//                                      ep      |counts rows|      |rows|
//
// DTensor's sequence parallelism gathers the sequence before a half's first product and scatters
// the sums after its second; the backward does the reverse, and gathers nothing again for the
// weights. The embedding only scatters, the head only gathers. Under expert parallelism a
// tensor-parallel rank routes its part of the sequence, and the shared experts are a half of their
// own.
//
// A backward in two passes: first everything that leads to the input's gradient, then only the
// products for the weights.
//
// Recompute (`parallel.recompute`, framework fsdp, too): before a layer's backward its forward runs
// again, with all calls (full), or its all-gathers and half of its products (selective: TorchTitan
// keeps every other product, attention, and the results of reduce-scatters and exchanges). Its
// parameters are there already: FSDP gathers them in front of the backward. Embedding and head
// are never recomputed.
//
// Context parallelism (fsdp/context.cpp): a rank has a part of the sequence; the others' keys and
// values are gathered or passed round during attention.
//
// Derived from torchtitan/models/common (moe.py, moe_sharding.py, token_dispatcher.py),
// torchtitan/distributed/activation_checkpoint.py and torch/distributed/tensor/experimental
// (context parallel attention). Threading: one thread.
#pragma once

#include "profiles/planners/fsdp/mesh.h"
#include "profiles/planners/pipeline/pipeline.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {

class FsdpLayers {
 public:
  // Streams of tensor, expert and context parallelism; 0 (compute) where there is none.
  struct Streams {
    std::size_t tp = 0, ep = 0, cp = 0, cp_send = 0;
  };
  FsdpLayers(const JobSpec& spec, const FsdpMesh& mesh, const StepTimes& times, ProgramBuilder& out,
             const Streams& streams);

  void forward(std::size_t layer);
  void backward(std::size_t layer, Pass pass);
  bool has_experts(std::size_t layer) const;

 private:
  bool is_first(std::size_t layer) const { return layer == 0; }
  bool is_last(std::size_t layer) const { return layer + 1 == model_.layers.size(); }
  bool is_block(std::size_t layer) const { return !is_first(layer) && !is_last(layer); }
  bool routes(std::size_t layer) const { return mesh_.ep > 1 && has_experts(layer); }
  // Shares of a layer's compute: routed experts, shared experts, everything else.
  struct Shares {
    double rest = 1, routed = 0, shared = 0;
  };
  Shares shares(std::size_t layer) const;
  double core_share(std::size_t layer) const;

  // How to traverse a layer, and which calls to make meanwhile.
  struct Traversal {
    const char* label;
    bool forward, gathers, others;  // all-gathers of the sequence; all other calls
  };
  void pass(std::size_t layer, Picoseconds time, const Traversal& how);
  void play_again(std::size_t layer);
  // The attention core takes `core_time` of `time`; 0: this half has none.
  void half(std::size_t layer, const std::string& label, Picoseconds time, Picoseconds core_time,
            const Traversal& how);
  void core(const std::string& label, Picoseconds time, bool forward);
  void gather_keys();
  void pass_round(const char* what, DataType type);
  std::uint64_t key_elements() const;
  void routed_experts(const std::string& label, Picoseconds time, const Traversal& how);
  void tensor_call(Func func);
  void exchange(const char* label, DataType type, std::uint64_t count);
  void parallel_loss();

  const JobSpec& spec_;
  const FsdpMesh& mesh_;
  const Model& model_;
  const StepTimes& times_;
  ProgramBuilder& out_;
  const Streams streams_;
  std::uint64_t tokens_ = 0;  // per micro-batch, on a context-parallel rank
};

}  // namespace ghostrank
