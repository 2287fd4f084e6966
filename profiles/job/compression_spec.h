// How gradients are compressed, and exchanged then.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/compress/memory.h"
#include "collectives/compressor.h"

namespace ghostrank {

// The gradients that a compression method takes as one tensor.
enum class Merge : std::uint8_t {
  bucket,    // what the framework reduces in one call
  tensor,    // every parameter tensor
  model,     // all gradients together
  matrices,  // each matrix; a call carries those of a whole bucket (PyTorch's powerSGD_hook)
};

// Measured nanoseconds of a method on a tensor of so many elements; decompress: of one payload.
struct CompressionTime {
  std::uint64_t elements = 0;
  double compress_ns = 0, decompress_ns = 0;
};

// How ranks exchange payloads: the communicators of GRACE.
enum class PayloadExchange : std::uint8_t {
  all_reduce,  // payloads are added up
  all_gather,
  broadcast,   // one after the other, every rank is root
  all_to_all,  // parts of the tensor; sums of parts are compressed again and gathered
};

// For ratios that follow the network: a step's exchanges end `budget` after its last gradients.
struct RatioLimits {
  double budget = 0;  // seconds
  double least = 0, most = 0;
};

struct CompressionSpec {
  const Compressor* method = nullptr;  // built in or of a plugin, which stays loaded
  CompressionOptions options;
  Merge merge = Merge::bucket;
  std::vector<CompressionTime> measured = {};  // by elements; empty: the method's own cost
  // Time that the host adds when it gathers payloads: per call, and per byte that a rank receives.
  double gather_us = 0, gather_ns = 0;
  Memory memory = Memory::none;
  PayloadExchange exchange = PayloadExchange::all_gather;
  bool measured_here = false;              // `measured` is of the job's device
  std::uint64_t min_bytes = 65536;         // byteps: smaller tensors are not compressed
  std::optional<RatioLimits> adapts = {};  // a controller chooses ratios; empty: options.ratio
};

}  // namespace ghostrank
