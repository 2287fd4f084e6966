// Compression of gradients whose size is known beforehand: a tensor becomes a payload of so many
// elements, payloads are exchanged, and what comes of them is a tensor again, the sum of all.
//
//   all_reduce   linear: the sum of payloads is the payload of the sum, decompressed once
//                x_r -> c(x_r) -> sum of c(x_r) -> d(that)
//   all_gather   any other: every rank's payload comes to everybody, who decompresses all of them
//                x_r -> c(x_r) -> c(x_0) .. c(x_n-1) -> d(each), added up
//
// A method is a row of functions on real bytes, which run in verify mode, and what they cost on the
// device that is emulated, which is charged wherever a job plays. Tensors are float32 here; of
// another type they are converted first.
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
  double ratio = 0.01;  // share of a tensor's elements that is sent, by methods that leave out some
};

// Of a device, and where the numbers come from.
struct CompressionCost {
  double compress_ns = 0, decompress_ns = 0;  // for each element of a tensor; of each payload
  double tensor_us = 0;                       // for each tensor and payload, beside that
  std::string_view source;
};

struct Compressor {
  std::string_view name;
  Func exchange = Func::all_gather;    // or all_reduce
  DataType payload = DataType::uint8;  // of what is exchanged
  CompressionCost cost;
  std::uint64_t (*size)(std::uint64_t elements, const CompressionOptions& options) = nullptr;
  void (*compress)(std::span<const float> tensor, const CompressionOptions& options,
                   std::byte* payload) = nullptr;
  void (*decompress)(const std::byte* payload, const CompressionOptions& options,
                     std::span<float> tensor) = nullptr;
  // The most by which an element may differ from the tensor's after both.
  double (*error)(std::span<const float> tensor, const CompressionOptions& options) = nullptr;
  // Elements of a tensor that are sent, where the ratio decides; null: all are.
  std::uint64_t (*kept)(std::uint64_t elements, const CompressionOptions& options) = nullptr;
};

// Those that are built in (collectives/compress/).
std::span<const Compressor> compressors();

inline std::uint64_t payload_bytes(const Compressor& method, std::uint64_t elements,
                                   const CompressionOptions& options) {
  return method.size(elements, options) * bytes_of(method.payload);
}

// How much a sum of so many payloads may be off for its data type, relative to the sum of their
// magnitudes; 0: whole numbers.
double rounding(DataType type, int payloads);

// Tries a method on tensors of several kinds and sizes, drawn from a seed: payloads of the size it
// says, the same for the same tensor, decompressed within its error; sums of them, where they are
// reduced. Empty, or what is wrong.
std::string why_wrong(const Compressor& method);

}  // namespace ghostrank
