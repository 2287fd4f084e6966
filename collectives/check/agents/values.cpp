// See agents/values.h.
#include "collectives/check/agents/values.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "collectives/common/dice.h"
#include "collectives/schemes/shared/numbers.h"

namespace ghostrank::checking {
namespace {

// Floats of this type represent all integers up to this one; 0: not a float type.
std::uint64_t exact_up_to(DataType type) {
  if (type == DataType::float32) return std::uint64_t{1} << 24;
  if (type == DataType::float16) return 2048;
  return type == DataType::bfloat16 ? 256 : 0;
}

template <typename T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void write(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// An element of a floating-point type.
double read_float(DataType type, const std::byte* at) {
  if (type == DataType::bfloat16) return read<Bf16>(at).value();
  if (type == DataType::float16) return read<Half>(at).value();
  return read<float>(at);
}

}  // namespace

std::string too_many_ranks(const Call& call) {
  const std::uint64_t most = exact_up_to(call.type);
  if (most == 0 || static_cast<std::uint64_t>(call.collective.size) <= most) return {};
  return "too many ranks for exact sums of " + std::string(name_of(call.type)) + ": at most " +
         std::to_string(most);
}

std::optional<TensorContent> content_of(const Call& call, std::uint64_t seed) {
  const Collective& c = call.collective;
  if (!reduces(c.func) || call.sparsity.density == 1) return std::nullopt;
  return TensorContent(call.sparsity, tensor_key(seed, 0, 0, call.number), c.size,
                       work_elements(c, 0));
}

CallValues::CallValues(const Call& call, std::uint64_t seed, const Ends& ends)
    : call_(call),
      seed_(mix(seed ^ (std::uint64_t{call.number} << 32))),
      content_(content_of(call, seed)),
      bound_(ends.error_bound(call,
                              static_cast<double>(exact_up_to(call.type)) / call.collective.size)),
      contract_(call.collective, false, contributions_),
      every_(contributions_.every(call.collective.size)) {
  for (GroupRank r = 0; r < call.collective.size; ++r) {
    set_of_.push_back(contributions_.only(r));
    only_[set_of_.back()] = r;
  }
}

void CallValues::expect(Expected& tensor) {
  std::vector<std::vector<float>> given(call_.collective.size);
  for (GroupRank r = 0; r < call_.collective.size; ++r)
    for (std::uint64_t e = 0; e < call_.collective.count; ++e)
      given[r].push_back(static_cast<float>(value(r, e)));
  const std::span<const float> result = tensor.next(given);
  expected_.assign(result.begin(), result.end());
}

std::uint64_t CallValues::value(GroupRank r, std::uint64_t element) const {
  if (content_) {
    std::int16_t value = 0;
    content_->values(r, element, 1, &value);
    return value;
  }
  const std::uint64_t bits = mix(seed_ + mix(static_cast<std::uint64_t>(r) << 40 | element));
  if (call_.type == DataType::uint8) return 1 + bits % 255;
  const std::uint64_t most = exact_up_to(call_.type);
  if (most == 0) return bits | 1;
  return 1 + bits % (most / call_.collective.size);
}

std::uint64_t CallValues::value(const Value& v) const {
  if (const auto alone = only_.find(v.set); alone != only_.end())
    return value(alone->second, v.element);
  std::uint64_t sum = 0;
  for (GroupRank r = 0; r < call_.collective.size; ++r) sum += value(r, v.element);
  return sum;
}

void CallValues::put(const Value& v, std::byte* at) const {
  if (v.set == 0) {
    std::memset(at, 0xff, bytes_of(call_.type));
    return;
  }
  const std::uint64_t number = value(v);
  switch (call_.type) {
    case DataType::uint8:
      return write(at, static_cast<std::uint8_t>(number));
    case DataType::bfloat16:
      return write(at, Bf16::from(static_cast<float>(number)));
    case DataType::float16:
      return write(at, Half::from(static_cast<float>(number)));
    case DataType::int32:
      return write(at, static_cast<std::uint32_t>(number));
    case DataType::float32:
      return write(at, static_cast<float>(number));
    case DataType::int64:
      return write(at, number);
  }
}

std::vector<std::byte> CallValues::work(GroupRank r) const {
  const std::uint32_t bytes = bytes_of(call_.type);
  std::vector<std::byte> buffer(work_elements(call_.collective, r) * bytes);
  for (std::uint64_t e = 0; e * bytes < buffer.size(); ++e)
    put(contract_.initial_work(r, e), buffer.data() + e * bytes);
  return buffer;
}

std::vector<std::byte> CallValues::input(GroupRank r) const {
  const std::uint32_t bytes = bytes_of(call_.type);
  std::vector<std::byte> buffer(input_elements(call_.collective, r) * bytes);
  for (std::uint64_t e = 0; e * bytes < buffer.size(); ++e)
    put(contract_.initial_input(r, e), buffer.data() + e * bytes);
  return buffer;
}

// True if a float is as close to the right value as the scheme promises.
bool CallValues::close(const std::byte* is, const std::byte* right) const {
  if (bound_ == 0) return false;
  const double rounding = call_.type == DataType::bfloat16  ? 0x1p-8
                          : call_.type == DataType::float16 ? 0x1p-11
                                                            : 0x1p-23;
  const double a = read_float(call_.type, is), b = read_float(call_.type, right);
  return std::abs(a - b) <= bound_ + std::abs(b) * rounding;
}

std::string CallValues::shown(const std::byte* at) const {
  switch (call_.type) {
    case DataType::uint8:
      return std::to_string(read<std::uint8_t>(at));
    case DataType::bfloat16:
      return std::to_string(read<Bf16>(at).value());
    case DataType::float16:
      return std::to_string(read<Half>(at).value());
    case DataType::int32:
      return std::to_string(read<std::int32_t>(at));
    case DataType::float32:
      return std::to_string(read<float>(at));
    case DataType::int64:
      return std::to_string(read<std::int64_t>(at));
  }
  return {};
}

// Guesses whether a wrong sum contains one rank's value twice or not at all.
std::string CallValues::guess(const Value& v, const std::byte* is) const {
  if (v.set != every_) return {};
  const std::uint32_t bytes = bytes_of(call_.type);
  alignas(8) std::byte one[8], sum[8];
  for (GroupRank r = 0; r < call_.collective.size; ++r) {
    put({set_of_[r], v.element}, one);
    put(v, sum);
    add_elements(call_.type, sum, one, 1);
    if (std::memcmp(sum, is, bytes) == 0) return "; that of rank " + std::to_string(r) + " twice";
    std::memcpy(sum, is, bytes);
    add_elements(call_.type, sum, one, 1);
    put(v, one);
    if (std::memcmp(sum, one, bytes) == 0)
      return "; that of rank " + std::to_string(r) + " is missing";
  }
  return {};
}

std::string CallValues::wrong(GroupRank r, std::span<const std::byte> work) const {
  const std::uint32_t bytes = bytes_of(call_.type);
  alignas(8) std::byte right[8];
  for (std::uint64_t e = 0; e * bytes < work.size(); ++e) {
    const std::optional<Value> required = contract_.required(r, e);
    if (!required) continue;
    const std::byte* is = work.data() + e * bytes;
    put(*required, right);
    if (!expected_.empty())
      std::memcpy(right, bytes_of_floats(call_.type, {&expected_[e], 1}).data(), bytes);
    if (std::memcmp(is, right, bytes) != 0 && !close(is, right))
      return "ends with wrong content at " + std::to_string(e) + ": " + shown(is) + " instead of " +
             shown(right) + ", " +
             (expected_.empty() ? contributions_.describe(*required) + guess(*required, is)
                                : "the result of tensor " + std::to_string(call_.tensor));
  }
  return {};
}

}  // namespace ghostrank::checking
