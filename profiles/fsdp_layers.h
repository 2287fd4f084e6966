// The forward and the backward of a layer under TorchTitan's tensor and expert parallelism, as ops;
// without either a layer is one compute.
//
//   half of a layer, tensor parallel   compute |    |...|    |
//                                      tp      |-AG-|   |-RS-|        backward the same
//   routed experts                     compute |      |   |experts|   |
//                                      ep      |counts rows|      |rows|
//
// DTensor's sequence parallelism gathers the sequence before a half's first product and scatters
// the sums after its second, and the other way round backward; nothing is gathered again for the
// weights. The embedding scatters, the head gathers. Under expert parallelism a tensor-parallel
// rank routes its part of the sequence, the shared experts being a half of their own.
//
// A backward in two passes: all that leads to the input's gradient, then the products for the
// weights alone. Derived from torchtitan/models/common (moe.py, moe_sharding.py,
// token_dispatcher.py). Threading: one thread.
#pragma once

#include "profiles/data_parallel.h"
#include "profiles/fsdp_mesh.h"
#include "profiles/pipeline.h"
#include "profiles/program_builder.h"

namespace ghostrank {

class FsdpLayers {
 public:
  // The streams of tensor and expert parallelism, where there is any.
  FsdpLayers(const JobSpec& spec, const FsdpMesh& mesh, const StepTimes& times, ProgramBuilder& out,
             std::size_t tensor_stream, std::size_t expert_stream);

  void forward(std::size_t layer);
  void backward(std::size_t layer, Pass pass);
  bool has_experts(std::size_t layer) const;

 private:
  bool is_first(std::size_t layer) const { return layer == 0; }
  bool is_last(std::size_t layer) const { return layer + 1 == model_.layers.size(); }
  bool routes(std::size_t layer) const { return mesh_.ep > 1 && has_experts(layer); }
  // Parts of a layer's compute: routed experts, shared ones, all else.
  struct Shares {
    double rest = 1, routed = 0, shared = 0;
  };
  Shares shares(std::size_t layer) const;

  struct Way {
    bool forward = true, communicates = true;
  };
  void pass(std::size_t layer, Picoseconds time, const Way& way);
  void half(std::size_t layer, const std::string& label, Picoseconds time, const Way& way);
  void routed_experts(const std::string& label, Picoseconds time, const Way& way);
  void tensor_call(Func func);
  void exchange(const char* label, DataType type, std::uint64_t count);
  void parallel_loss();

  const JobSpec& spec_;
  const FsdpMesh& mesh_;
  const Model& model_;
  const StepTimes& times_;
  ProgramBuilder& out_;
  const std::size_t tensor_stream_, expert_stream_;
  std::uint64_t tokens_ = 0;  // of a micro-batch
};

}  // namespace ghostrank
