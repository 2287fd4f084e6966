// Error feedback: the part of its gradients that a rank keeps for later steps, because the
// compression method did not send it. g: a step's gradient; t: the tensor that is compressed
// instead; sent: the decompressed payload, which the other ranks take for t. From GRACE:
//
//   residual    t = e + g           e = t - sent        sum of all sent + e = sum of all g
//   efsignsgd   t = e + 0.1 g       e = t - sent        likewise, of 0.1 g; sums are divided by 0.1
//   dgc         u = 0.9 u + g       u = v = 0 where     sum of all sent + v = sum of all u
//               v = v + u, t = v    something was sent
//   nesterov    m = 0.9 m + g       e = t - sent        sum of all sent + e = sum of all g + 0.9 m
//               t = e + g + 0.9 m
//   powersgd    t = e + g           e = t - mean        mean: of all ranks, as decompressed; the
//                                                       sums over all ranks are conserved
//
// No memory keeps an element that is not finite: what was lost with it stays lost. 0.1 is the
// learning rate of Karimireddy et al. (2019) as GRACE has it; methods that scale with their tensor
// send the same with every rate. dgc: momentum correction and factor masking of Lin et al. (2018),
// without clipping. nesterov is not GRACE's but BytePS's: error feedback and momentum.
//
// Units: elements. Threading: one owner. Memory: 4 bytes an element, 8 with dgc and nesterov, 0
// with none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

struct Compressor;  // collectives/compressor.h

enum class Memory : std::uint8_t { none, residual, efsignsgd, dgc, powersgd, nesterov };
std::string_view name_of(Memory memory);

// Why a method cannot use the memory, and what it can use; "": it can.
std::string why_refused(Memory memory, const Compressor& method);

// Share of a momentum that is left after a step.
constexpr double momentum_of(Memory memory) {
  return memory == Memory::dgc || memory == Memory::nesterov ? 0.9 : 0;
}

// Passes of 4 bytes an element over a device's memory, and launches of kernels, in each step.
struct MemoryWork {
  int passes = 0, launches = 0;
};
MemoryWork work_of(Memory memory);

// The memory of one rank, for `elements` gradients in one order.
class GradientMemory {
 public:
  GradientMemory(Memory kind, std::uint64_t elements);

  Memory kind() const { return kind_; }
  // Turns the gradients g from element `first` on into t, in place. Call it once a step for every
  // element.
  void compensate(std::uint64_t first, std::span<float> gradient);
  // Call it after compensate(). `tensor`: t, as compressed; `sent`: the decompressed payload, with
  // powersgd the mean of all ranks.
  void keep(std::uint64_t first, std::span<const float> tensor, std::span<const float> sent);
  // Multiply sums of decompressed payloads by this factor.
  float scale() const;
  // The part that has not been sent: e, or v.
  std::span<const float> kept() const { return kept_; }

 private:
  Memory kind_;
  std::vector<float> kept_, momentum_;  // momentum_: u of dgc, m of nesterov
};

}  // namespace ghostrank
