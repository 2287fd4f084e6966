// PyTorch's names of collectives and of element types, as they stand in traces. Threading: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collectives/data_type.h"
#include "collectives/schedule.h"

namespace ghostrank {

enum class TorchCall : std::uint8_t { collective, send, recv, batch, wait, init };
struct TorchName {
  TorchCall call = TorchCall::collective;
  Func func = Func::all_reduce;
};
// "all_reduce", "_allgather_base", "isend", ...; in any case.
std::optional<TorchName> torch_call(std::string_view name);

// Bytes of an element of "float", "BFloat16", "torch.float8_e4m3fn", ...; none: no such type.
std::optional<std::uint32_t> torch_bytes(std::string_view type);

// What elements of so many bytes are played as: traffic depends on their width only.
DataType played_as(std::uint32_t bytes);

}  // namespace ghostrank
