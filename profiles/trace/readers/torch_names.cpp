#include "profiles/trace/readers/torch_names.h"

#include <cctype>
#include <string>

namespace ghostrank {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct Named {
  std::string_view name;
  TorchName is;
};
constexpr Named kTorchCalls[] = {
    {"allreduce", {TorchCall::collective, Func::all_reduce}},
    {"all_reduce", {TorchCall::collective, Func::all_reduce}},
    {"allreduce_coalesced", {TorchCall::collective, Func::all_reduce}},
    {"reduce", {TorchCall::collective, Func::reduce}},
    {"_reduce_oop", {TorchCall::collective, Func::reduce}},
    {"broadcast", {TorchCall::collective, Func::broadcast}},
    {"_broadcast_oop", {TorchCall::collective, Func::broadcast}},
    {"allgather", {TorchCall::collective, Func::all_gather}},
    {"all_gather", {TorchCall::collective, Func::all_gather}},
    {"all_gather_base", {TorchCall::collective, Func::all_gather}},
    {"_allgather_base", {TorchCall::collective, Func::all_gather}},
    {"_all_gather_base", {TorchCall::collective, Func::all_gather}},
    {"all_gather_into_tensor", {TorchCall::collective, Func::all_gather}},
    {"allgather_into_tensor_coalesced", {TorchCall::collective, Func::all_gather}},
    {"all_gather_into_tensor_coalesced", {TorchCall::collective, Func::all_gather}},
    {"reduce_scatter", {TorchCall::collective, Func::reduce_scatter}},
    {"reduce_scatter_base", {TorchCall::collective, Func::reduce_scatter}},
    {"_reduce_scatter_base", {TorchCall::collective, Func::reduce_scatter}},
    {"reduce_scatter_tensor", {TorchCall::collective, Func::reduce_scatter}},
    {"reduce_scatter_tensor_coalesced", {TorchCall::collective, Func::reduce_scatter}},
    {"alltoall", {TorchCall::collective, Func::all_to_all}},
    {"all_to_all", {TorchCall::collective, Func::all_to_all}},
    {"all_to_all_single", {TorchCall::collective, Func::all_to_all}},
    // torchcomms
    {"all_gather_single", {TorchCall::collective, Func::all_gather}},
    {"reduce_scatter_single", {TorchCall::collective, Func::reduce_scatter}},
    {"gather_single", {TorchCall::collective, Func::gather}},
    {"all_to_all_v_single", {TorchCall::collective, Func::all_to_all_v}},
    {"all_to_allv", {TorchCall::collective, Func::all_to_all_v}},
    {"alltoallv", {TorchCall::collective, Func::all_to_all_v}},
    {"gather", {TorchCall::collective, Func::gather}},
    {"scatter", {TorchCall::collective, Func::scatter}},
    {"barrier", {TorchCall::collective, Func::barrier}},
    {"send", {TorchCall::send, Func::send_recv}},
    {"isend", {TorchCall::send, Func::send_recv}},
    {"recv", {TorchCall::recv, Func::send_recv}},
    {"irecv", {TorchCall::recv, Func::send_recv}},
    {"batch_isend_irecv", {TorchCall::batch, Func::send_recv}},
    {"wait", {TorchCall::wait, Func::barrier}},
    {"init", {TorchCall::init, Func::barrier}},
};

struct Type {
  std::string_view name;
  std::uint32_t bytes;
};
constexpr Type kTypes[] = {
    {"float", 4},
    {"float32", 4},
    {"double", 8},
    {"float64", 8},
    {"half", 2},
    {"float16", 2},
    {"fp16", 2},
    {"bfloat16", 2},
    {"bf16", 2},
    {"fp32", 4},
    {"fp8", 1},
    {"long", 8},
    {"long int", 8},
    {"int64", 8},
    {"int", 4},
    {"int32", 4},
    {"short", 2},
    {"short int", 2},
    {"int16", 2},
    {"char", 1},
    {"signed char", 1},
    {"unsigned char", 1},
    {"int8", 1},
    {"byte", 1},
    {"uint8", 1},
    {"bool", 1},
    {"boolean", 1},
    {"uint16", 2},
    {"uint32", 4},
    {"uint64", 8},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
    {"float8_e4m3fnuz", 1},
    {"float8_e5m2fnuz", 1},
    {"float8_e8m0fnu", 1},
    {"float4_e2m1fn_x2", 1},
    {"complexhalf", 4},
    {"complex32", 4},
    {"complexfloat", 8},
    {"complex64", 8},
    {"complexdouble", 16},
    {"complex128", 16},
};

}  // namespace

std::optional<TorchName> torch_call(std::string_view name) {
  std::string known = lower(name);
  if (known.starts_with("nccl:")) known.erase(0, 5);
  if (known.starts_with("c10d::")) known.erase(0, 6);
  for (const Named& one : kTorchCalls)
    if (one.name == known) return one.is;
  return std::nullopt;
}

std::optional<std::uint32_t> torch_bytes(std::string_view type) {
  std::string known = lower(type);
  if (known.starts_with("torch.")) known.erase(0, 6);
  if (known.starts_with("c10::")) known.erase(0, 5);
  for (const Type& one : kTypes)
    if (one.name == known) return one.bytes;
  return std::nullopt;
}

DataType played_as(std::uint32_t bytes) {
  switch (bytes) {
    case 2:
      return DataType::bfloat16;
    case 4:
      return DataType::float32;
    case 8:
      return DataType::int64;
    default:
      return DataType::uint8;
  }
}

}  // namespace ghostrank
