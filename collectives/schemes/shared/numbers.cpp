#include "collectives/schemes/shared/numbers.h"

#include <algorithm>
#include <cstring>

namespace ghostrank {
namespace {

template <typename Short>
std::vector<float> widened(std::span<const std::byte> content) {
  std::vector<float> floats(content.size() / sizeof(Short));
  for (std::size_t i = 0; i < floats.size(); ++i) {
    Short number;
    std::memcpy(&number, content.data() + i * sizeof number, sizeof number);
    floats[i] = number.value();
  }
  return floats;
}

template <typename Short>
std::vector<std::byte> rounded(std::span<const float> floats) {
  std::vector<std::byte> content(floats.size() * sizeof(Short));
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const Short number = Short::from(floats[i]);
    std::memcpy(content.data() + i * sizeof number, &number, sizeof number);
  }
  return content;
}

}  // namespace

std::vector<float> floats_of(DataType type, std::span<const std::byte> content) {
  if (type == DataType::bfloat16) return widened<Bf16>(content);
  if (type == DataType::float16) return widened<Half>(content);
  std::vector<float> floats(content.size() / sizeof(float));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(floats));
  std::copy_n(content.begin(), bytes.size(), bytes.begin());  // none, if ranks hold no data
  return floats;
}

std::vector<std::byte> bytes_of_floats(DataType type, std::span<const float> floats) {
  if (type == DataType::bfloat16) return rounded<Bf16>(floats);
  if (type == DataType::float16) return rounded<Half>(floats);
  const auto bytes = std::as_bytes(floats);
  return {bytes.begin(), bytes.end()};
}

}  // namespace ghostrank
