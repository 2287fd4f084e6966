// What ranks hold of the tensor that a call of a job reduces, in one iteration.
//
// Threading: pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/compress/plain.h"
#include "collectives/compressor.h"
#include "collectives/schemes/keyed/piece_compression.h"
#include "collectives/tensor_content.h"
#include "emulator/verify/tensor_result.h"
#include "profiles/job/job.h"
#include "profiles/training/gradient_state.h"

namespace ghostrank {

class GradientStates;  // gradient_states.h

// A tensor whose compressed payloads are exchanged.
struct CompressedContent {
  TensorContent tensor;
  const Compressor* method;
  CompressionOptions options;     // of the call, but for the ranks' seeds
  const GradientLaws* gradients;  // draw the gradients in place of `tensor`, if not null
  std::uint32_t drawn_in = 0;     // iteration of these draws
  std::uint64_t first = 0;        // as CompressedTensor::first
  PayloadExchange exchange = PayloadExchange::all_gather;
  int stage = 0;  // of an exchange that has several calls: of all_to_all, the second is 1
  // Makes the tensor of the gradient, if not null. `number`, `iteration`: which tensor, and when.
  GradientStates* states = nullptr;
  std::uint32_t number = 0, iteration = 0;

  CompressionOptions of(GroupRank rank) const {
    CompressionOptions own = options;
    own.seed = rank_seed(options.shared_seed, rank);
    return own;
  }
};

struct CallContent {
  std::optional<TensorContent> tensor;  // of the reduced data; empty: see verify/values.h
  std::optional<CompressedContent> compressed;
  TensorResult* expected = nullptr;  // the result in place of a sum; null: a sum
};

// How sparse the job's tensors are in an iteration, warm-up included; spec.tensors must be set.
inline Sparsity sparsity_in(const JobSpec& spec, std::uint32_t iteration) {
  Sparsity sparsity = *spec.tensors;
  const int last = spec.run.warmup + spec.run.iterations - 1;
  if (spec.last_density > 0 && last > 0)
    sparsity.density *= std::pow(spec.last_density / sparsity.density,
                                 std::min(1.0, iteration / static_cast<double>(last)));
  return sparsity;
}

// Elements of a tensor that a payload of `payload` elements carries, by a method whose ratios
// follow the network and whose payloads grow with what they carry.
inline std::uint64_t kept_in(const CompressionSpec& compression, std::uint64_t elements,
                             std::uint64_t payload) {
  CompressionOptions all = compression.options;
  all.ratio = 1;
  __extension__ using Wide = unsigned __int128;  // billions of elements, times their bytes
  return static_cast<std::uint64_t>(Wide{elements} * payload /
                                    compression.method->size(elements, all));
}

// The job's options with the tensor's shape. `tensor` must outlive the result.
inline CompressionOptions options_of(const JobSpec& spec, const CompressedTensor& tensor) {
  CompressionOptions options = spec.compression->options;
  options.rows = tensor.rows;
  options.parts = tensor.parts;
  return options;
}

// True if servers and roots compress pieces of the op's tensor into as many bytes as its gradients
// need.
inline bool compresses_drawn_pieces(const JobSpec& spec, const Op& op) {
  const PieceCompression* how = spec.collectives.at_servers.compression.get();
  return how && how->method->measure && op.func == Func::all_reduce &&
         op.dtype == DataType::float32;
}

// Empty if the op names no tensor, or if the job's tensors are neither sparse nor compressed, and
// carry nothing from iteration to iteration. `group`: index into workload.groups; `all`: of one job
// or of all.
inline CallContent content_of(const JobSpec& all, const Workload& workload, const Op& op,
                              std::uint32_t group, std::uint32_t iteration, const Collective& c,
                              GradientStates* states = nullptr) {
  CallContent content;
  const JobSpec& spec = settings_of(all, workload, op.group);
  const bool in_pieces = compresses_drawn_pieces(spec, op);
  if (op.tensor == 0 || (!spec.tensors && !spec.compression && !states && !in_pieces))
    return content;
  const CompressedTensor* whole = compressed_tensor(workload, op);
  const bool compressed = whole && spec.compression;
  // Payloads of planned sizes: their gradients are the same in every iteration, unless the sizes
  // are planned for each. Then iterations beyond the plan, which a job plays while others still
  // measure, repeat its last.
  const bool drawn = compressed && spec.compression->method->measure;
  const auto planned =
      static_cast<std::uint32_t>(std::max(1, spec.run.warmup + spec.run.iterations));
  const std::uint32_t of = !drawn               ? iteration
                           : steps_differ(spec) ? std::min(iteration, planned - 1)
                                                : 0;
  const std::uint32_t number = number_of(op.tensor);
  const std::uint64_t key = tensor_key(spec.run.seed, number_in_job(workload, group), number, of);
  if (compressed || states || in_pieces) {
    CompressionOptions options;
    if (compressed) options = options_of(spec, *whole);
    if (compressed && spec.compression->adapts) {  // half an element more, or rounding may take one
      const auto kept = static_cast<double>(kept_in(*spec.compression, whole->elements, op.count));
      options.ratio = std::min(1.0, (kept + 0.5) / static_cast<double>(whole->elements));
    }
    options.shared_seed = key;
    const PayloadExchange exchange =
        compressed ? spec.compression->exchange : PayloadExchange::all_reduce;
    const bool staged = exchange == PayloadExchange::all_to_all;
    options.round = staged ? 0 : round_of(op.tensor);
    content.compressed = {TensorContent(spec.tensors ? sparsity_in(spec, of) : Sparsity{}, key,
                                        c.size, whole ? whole->elements : op.count),
                          compressed ? spec.compression->method : &kPlain,
                          options,
                          drawn || in_pieces ? &spec.gradients : nullptr,
                          of,
                          whole ? whole->first : 0,
                          exchange,
                          staged ? round_of(op.tensor) : 0,
                          states,
                          number,
                          iteration};
  } else if (spec.tensors) {
    content.tensor = TensorContent(sparsity_in(spec, iteration), key, c.size, work_elements(c, 0),
                                   layout_of(workload, op));
  }
  return content;
}

// As sparse as a tensor of so many elements is drawn: ranks hold whole blocks (tensor_content.h).
inline Sparsity in_whole_blocks(const Sparsity& sparsity, int ranks, std::uint64_t elements) {
  if (elements == 0) return sparsity;
  const auto blocks = static_cast<double>((elements + sparsity.block - 1) / sparsity.block);
  const auto rounded = [&](double share) {
    return std::min(std::floor(share * blocks + 0.5), blocks) / blocks;
  };
  Sparsity whole = sparsity;
  switch (sparsity.overlap) {
    case Overlap::random:
    case Overlap::all:
      whole.density = rounded(sparsity.density);
      break;
    case Overlap::none:
      whole.density = rounded(ranks * sparsity.density) / ranks;
      break;
    case Overlap::measured: {
      std::vector<double> shares(sparsity.measured->size());
      double from = 0, nominal = 0;
      whole.density = 0;
      for (std::size_t k = shares.size() - 1; k > 0; --k) {
        nominal += (*sparsity.measured)[k];
        const double to = rounded(nominal);
        shares[k] = to - from;
        whole.density += shares[k] * static_cast<double>(k) / ranks;
        from = to;
      }
      shares[0] = 1 - from;
      whole.measured = std::make_shared<const std::vector<double>>(std::move(shares));
      break;
    }
  }
  return whole;
}

// The densities of the op's tensor on average, as a plan counts them; dense if the op names none.
inline Sparsity mean_sparsity(const JobSpec& all, const Workload& workload, const Op& op, int ranks,
                              std::uint64_t elements) {
  const JobSpec& spec = settings_of(all, workload, op.group);
  if (op.tensor == 0 || !spec.tensors) return {};
  const auto layout = layout_of(workload, op);
  Sparsity mean = in_whole_blocks(*spec.tensors, ranks, elements);
  if (!layout) return mean;
  mean.uneven = std::make_shared<const UnevenTensor>(UnevenTensor{*layout, mean});
  const MeanDensities densities = mean.means(0, elements, ranks);
  const auto uneven = std::move(mean.uneven);
  mean = Sparsity::of_means(densities.density, densities.union_density, ranks, spec.tensors->block);
  mean.uneven = uneven;
  return mean;
}

}  // namespace ghostrank
