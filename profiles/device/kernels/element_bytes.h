// Bytes of elements that do not depend on the model's precision.
#pragma once

namespace ghostrank {

inline constexpr double kMaskByte = 1;  // of dropout
inline constexpr double kFloat = 4;     // softmax, rotary positions and the loss compute in float32

}  // namespace ghostrank
