// The shape of Llama-3 8B, for closed forms.
#pragma once

#include <cstdint>

namespace ghostrank::test {

inline constexpr std::uint64_t kLlamaLayers = 32;
inline constexpr std::uint64_t kLlamaTokens = 8192;  // of a sequence
inline constexpr std::uint64_t kLlamaHidden = 4096;
inline constexpr std::uint64_t kLlamaKeys = 2 * 8 * 128;  // of a token: 8 heads of keys and values

}  // namespace ghostrank::test
