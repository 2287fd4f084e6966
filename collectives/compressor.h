// Gradient compression. Each rank compresses its tensor to a payload, the ranks exchange payloads,
// and each decompresses the result to a tensor again: the sum over all ranks.
//
//   all_reduce   linear: the sum of payloads is the payload of the sum, decompressed once
//                x_r -> c(x_r) -> sum of c(x_r) -> d(sum)
//   all_gather   any other: every rank receives the payloads of all ranks and decompresses each
//                x_r -> c(x_r) -> c(x_0) .. c(x_n-1) -> d(each), added up
//
// The size of a payload is known beforehand, or follows from the data (measure()); then payloads of
// ranks differ in size and are all-gathered. A method of two rounds (PowerSGD) all-reduces a second
// payload that depends on the sum of the first.
//
// A method is a row of functions on real bytes, which run in verify mode, and of their cost on the
// emulated device, which is charged in every mode. Tensors are float32 here; tensors of other types
// are converted first.
//
// Units: elements; payloads in elements of their type. Threading: pure functions, constant data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/common/data_type.h"
#include "collectives/schedule.h"

namespace ghostrank {

// A parameter tensor as a matrix: its first dimension, and all others.
struct TensorShape {
  std::uint64_t rows = 0, columns = 0;
  bool operator==(const TensorShape&) const = default;
};

struct CompressionOptions {
  double ratio = 0.01;         // share of a tensor's elements that sparsifying methods send
  int quantum = 64;            // qsgd, dithering: number of levels above 0
  double threshold = 0.01;     // threshold: magnitudes above it are sent
  int rank = 1;                // powersgd: of the approximation
  int quantiles = 64;          // sketch: number of buckets
  double error_bound = 2e-10;  // inceptionn
  int stages = 0;              // sidco: fits of the threshold; 0: as many as the ratio asks for
  double first_stage = 0.25;   // sidco: share of the elements that the first of several fits keeps
  bool natural = false;        // dithering: levels are powers of two; else evenly spaced
  bool l2 = false;             // dithering: the top level is the L2 norm, not the largest magnitude

  // What differs from call to call, set by the caller.
  std::uint64_t seed = 1;         // of this rank's random draws for this tensor in this step
  std::uint64_t shared_seed = 1;  // the same on every rank
  std::uint64_t rows = 0;         // of a tensor that is a matrix; 0: unknown
  std::span<const TensorShape> parts = {};    // of a bucket: its tensors, in order; empty: unknown
  int round = 0;                              // of a method that has several, from 0
  std::span<const std::byte> first_sum = {};  // later rounds: the sum of the payloads before
};

// Cost on the emulated device, and the source of the numbers.
struct CompressionCost {
  double compress_ns = 0, decompress_ns = 0;  // per tensor element; decompress: per payload
  double compress_us = 0, decompress_us = 0;  // fixed: per tensor, per payload
  std::string_view source;
};

struct Compressor {
  std::string_view name;
  Func exchange = Func::all_gather;    // or all_reduce
  DataType payload = DataType::uint8;  // type of the payload's elements
  CompressionCost cost;
  // size() returns the elements of the payload of a tensor of `elements` elements, or the most that
  // it can have where measure() says how many; compress() fills exactly this many, and decompress()
  // the whole tensor.
  std::uint64_t (*size)(std::uint64_t elements, const CompressionOptions& options) = nullptr;
  void (*compress)(std::span<const float> tensor, const CompressionOptions& options,
                   std::byte* payload) = nullptr;
  void (*decompress)(std::span<const std::byte> payload, const CompressionOptions& options,
                     std::span<float> tensor) = nullptr;
  // Bound of |decompress(compress(tensor)) - tensor| for every element.
  double (*error)(std::span<const float> tensor, const CompressionOptions& options) = nullptr;
  // Number of tensor elements that the method sends, if the ratio decides it; null: it sends all.
  std::uint64_t (*kept)(std::uint64_t elements, const CompressionOptions& options) = nullptr;
  // Where the data decide the size: elements of this tensor's payload; null: size() decides.
  std::uint64_t (*measure)(std::span<const float> tensor,
                           const CompressionOptions& options) = nullptr;
  // Where there is measure(): tensor elements that a payload of this many elements stands for.
  std::uint64_t (*carried)(std::uint64_t payload) = nullptr;
  // Tensors have at most this many elements, because payloads or the method number them in less.
  std::uint64_t most_elements = std::numeric_limits<std::uint64_t>::max();
  int rounds = 1;         // 2: size(), compress() and decompress() look at options.round
  bool majority = false;  // the result is the sign of the sum: each rank's payload is a vote
};

// The longest tensor whose elements have indices of 32 bits.
inline constexpr std::uint64_t kMostIndexed = std::numeric_limits<std::uint32_t>::max();

// The built-in methods (collectives/compress/).
std::span<const Compressor> compressors();

// Most bytes that a payload can have; exactly those where the data do not decide.
inline std::uint64_t payload_bytes(const Compressor& method, std::uint64_t elements,
                                   const CompressionOptions& options) {
  return method.size(elements, options) * bytes_of(method.payload);
}

// A tensor's payload.
std::vector<std::byte> payload_of(const Compressor& method, std::span<const float> tensor,
                                  const CompressionOptions& options);

// Plays all rounds of an exchange of the ranks' tensors; returns the result, which every rank has.
// `options`: by rank; they differ in their seed alone.
std::vector<float> exchanged(const Compressor& method, std::span<const std::vector<float>> tensors,
                             std::span<const CompressionOptions> options);

// Relative rounding error of a sum of this many payloads: at most this share of the sum of their
// magnitudes; 0 for integers.
double rounding(DataType type, int payloads);

// Tests a method on tensors of several kinds and sizes, drawn from fixed seeds: the payload has the
// size that size() says, the same tensor gives the same payload, decompress() stays within error(),
// and sums of payloads are right if the method is all-reduced. Returns what is wrong, or "".
std::string why_wrong(const Compressor& method);

}  // namespace ghostrank
