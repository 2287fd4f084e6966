#include "collectives/compress/memory.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "collectives/compress/draws.h"
#include "collectives/compressor.h"

namespace ghostrank {
namespace {

constexpr float kEfSignSgdRate = 0.1f, kMomentum = 0.9f;
constexpr std::array<std::string_view, 6> kNames{"none", "residual", "efsignsgd",
                                                 "dgc",  "powersgd", "nesterov"};

// Whether decompression returns every element unchanged or as 0. Tried on numbers of many scales,
// which no method of few bits can represent.
bool sends_elements(const Compressor& method) {
  if (method.rounds != 1 || method.majority) return false;
  constexpr std::uint64_t kElements = 400;
  std::vector<float> tensor(kElements), back(kElements);
  for (std::uint64_t i = 0; i < kElements; ++i)
    tensor[i] = std::ldexp(2 * unit_draw(7, i) - 1, -static_cast<int>(i % 12));
  CompressionOptions options;
  options.ratio = 0.3;
  method.decompress(payload_of(method, tensor, options), options, back);
  bool some = false;
  for (std::uint64_t i = 0; i < kElements; ++i) {
    if (back[i] != 0 && back[i] != tensor[i]) return false;
    some = some || back[i] != 0;
  }
  return some;
}

}  // namespace

std::string_view name_of(Memory memory) { return kNames[static_cast<std::size_t>(memory)]; }

std::string why_refused(Memory memory, const Compressor& method) {
  const std::string name(method.name);
  switch (memory) {
    case Memory::none:
      return "";
    case Memory::residual:
    case Memory::nesterov:
      if (method.majority)
        return "payloads of " + name +
               " are votes, which have no magnitude that something could be left of; use none, or "
               "method efsignsgd";
      if (method.rounds > 1)
        return "what " + name + " sends follows from the gradients of all ranks; use powersgd";
      return "";
    case Memory::efsignsgd:
      if (name == "efsignsgd") return "";
      break;
    case Memory::dgc:
      if (sends_elements(method)) return "";
      return "it forgets what was sent in full, and " + name +
             " sends no element as it is; use a method that sends values, as dgc, topk or "
             "threshold, or memory " +
             (method.rounds > 1 ? "powersgd"
              : method.majority ? "none"
                                : "residual");
    case Memory::powersgd:
      if (method.rounds > 1) return "";
      break;
  }
  return "it is that of method " + std::string(name_of(memory)) + ", not of " + name + "; use " +
         (method.rounds > 1 ? "powersgd"
          : method.majority ? "none"
                            : "residual");
}

MemoryWork work_of(Memory memory) {
  switch (memory) {
    case Memory::none:
      return {};
    case Memory::residual:
    case Memory::efsignsgd:
      return {7, 3};  // t: reads g and e, writes t; sent: writes; e: reads t and sent, writes e
    case Memory::nesterov:
      return {11, 5};  // as residual; m: reads m and g, writes m; t: reads m
    case Memory::dgc:
      return {11, 4};  // u: 3; v: 3; both where something was sent: reads the mask, 2 each
    case Memory::powersgd:
      return {6, 2};  // as residual, but the mean is there already
  }
  return {};
}

GradientMemory::GradientMemory(Memory kind, std::uint64_t elements)
    : kind_(kind),
      kept_(kind == Memory::none ? 0 : elements),
      momentum_(momentum_of(kind) > 0 ? elements : 0) {}

void GradientMemory::compensate(std::uint64_t first, std::span<float> gradient) {
  if (kind_ == Memory::none) return;
  float* const kept = kept_.data() + first;
  if (kind_ == Memory::dgc) {
    float* const momentum = momentum_.data() + first;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      momentum[i] = kMomentum * momentum[i] + gradient[i];
      kept[i] += momentum[i];
      gradient[i] = kept[i];
    }
    return;
  }
  if (kind_ == Memory::nesterov) {
    float* const momentum = momentum_.data() + first;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      momentum[i] = kMomentum * momentum[i] + gradient[i];
      gradient[i] += kMomentum * momentum[i];
    }
  }
  const float share = kind_ == Memory::efsignsgd ? kEfSignSgdRate : 1;
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = kept[i] + share * gradient[i];
}

void GradientMemory::keep(std::uint64_t first, std::span<const float> tensor,
                          std::span<const float> sent) {
  if (kind_ == Memory::none) return;
  float* const kept = kept_.data() + first;
  if (kind_ == Memory::dgc) {
    float* const momentum = momentum_.data() + first;
    for (std::size_t i = 0; i < tensor.size(); ++i)
      if (sent[i] != 0 || !std::isfinite(tensor[i])) kept[i] = momentum[i] = 0;
    return;
  }
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const float left = tensor[i] - sent[i];
    kept[i] = std::isfinite(left) ? left : 0;
  }
  if (kind_ != Memory::nesterov) return;
  float* const momentum = momentum_.data() + first;
  for (std::size_t i = 0; i < tensor.size(); ++i)
    if (!std::isfinite(tensor[i])) momentum[i] = 0;
}

float GradientMemory::scale() const { return kind_ == Memory::efsignsgd ? 1 / kEfSignSgdRate : 1; }

}  // namespace ghostrank
