// A bound on sizes that a model is described by.
#pragma once

namespace ghostrank {

inline constexpr double kMaxWidth = 1e6;  // of a layer, an embedding or a head

}  // namespace ghostrank
