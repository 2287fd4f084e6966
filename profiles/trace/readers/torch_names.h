// PyTorch's names of calls and of element types, as traces have them. Threading: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collectives/common/data_type.h"
#include "collectives/schedule.h"

namespace ghostrank {

enum class TorchCall : std::uint8_t { collective, send, recv, batch, wait, init };
struct TorchName {
  TorchCall call = TorchCall::collective;
  Func func = Func::all_reduce;
};
// "all_reduce", "_allgather_base", "isend", ... in upper or lower case; empty: unknown.
std::optional<TorchName> torch_call(std::string_view name);

// Bytes of an element of "float", "BFloat16", "torch.float8_e4m3fn", ...; empty: unknown.
std::optional<std::uint32_t> torch_bytes(std::string_view type);

// The type with which elements of `bytes` are played, because traffic depends only on their width.
DataType played_as(std::uint32_t bytes);

}  // namespace ghostrank
