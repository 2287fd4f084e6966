// Gradient compression whose payload size is known in advance. Each rank compresses its tensor to a
// payload of a fixed number of elements, the ranks exchange payloads, and each decompresses the
// result to a tensor again: the sum over all ranks.
//
//   all_reduce   linear: the sum of payloads is the payload of the sum, decompressed once
//                x_r -> c(x_r) -> sum of c(x_r) -> d(that)
//   all_gather   any other: every rank receives the payloads of all ranks and decompresses each
//                x_r -> c(x_r) -> c(x_0) .. c(x_n-1) -> d(each), added up
//
// A method is a row of functions on real bytes, which run in verify mode, and of their cost on the
// emulated device, which is charged in every mode. Tensors are float32 here; tensors of other types
// are converted first.
//
// Units: elements; payloads in elements of their type. Threading: pure functions, constant data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collectives/data_type.h"
#include "collectives/schedule.h"

namespace ghostrank {

struct CompressionOptions {
  double ratio = 0.01;  // share of a tensor's elements that sparsifying methods send
};

// Cost on the emulated device, and the source of the numbers.
struct CompressionCost {
  double compress_ns = 0, decompress_ns = 0;  // per tensor element; decompress: per payload
  double tensor_us = 0;  // fixed cost per tensor and payload, added to the above
  std::string_view source;
};

struct Compressor {
  std::string_view name;
  Func exchange = Func::all_gather;    // or all_reduce
  DataType payload = DataType::uint8;  // type of the payload's elements
  CompressionCost cost;
  // size() returns the elements of the payload of a tensor of `elements` elements; compress() fills
  // exactly payload_bytes() bytes, and decompress() the whole tensor.
  std::uint64_t (*size)(std::uint64_t elements, const CompressionOptions& options) = nullptr;
  void (*compress)(std::span<const float> tensor, const CompressionOptions& options,
                   std::byte* payload) = nullptr;
  void (*decompress)(const std::byte* payload, const CompressionOptions& options,
                     std::span<float> tensor) = nullptr;
  // Bound of |decompress(compress(tensor)) - tensor| for every element.
  double (*error)(std::span<const float> tensor, const CompressionOptions& options) = nullptr;
  // Number of tensor elements that the method sends, if the ratio decides it; null: it sends all.
  std::uint64_t (*kept)(std::uint64_t elements, const CompressionOptions& options) = nullptr;
};

// The built-in methods (collectives/compress/).
std::span<const Compressor> compressors();

inline std::uint64_t payload_bytes(const Compressor& method, std::uint64_t elements,
                                   const CompressionOptions& options) {
  return method.size(elements, options) * bytes_of(method.payload);
}

// Relative rounding error of a sum of this many payloads: at most this share of the sum of their
// magnitudes; 0 for integers.
double rounding(DataType type, int payloads);

// Tests a method on tensors of several kinds and sizes, drawn from fixed seeds: the payload has the
// size that size() says, the same tensor gives the same payload, decompress() stays within error(),
// and sums of payloads are right if the method is all-reduced. Returns what is wrong, or "".
std::string why_wrong(const Compressor& method);

}  // namespace ghostrank
