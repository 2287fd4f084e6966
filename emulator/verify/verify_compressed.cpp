#include "emulator/verify/verify_compressed.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "collectives/compressor.h"
#include "emulator/verify/elements.h"

namespace ghostrank {
namespace {

// What a compression method needs of a call.
struct Compressed {
  explicit Compressed(const RankCall& c)
      : content(c.compressed->tensor),
        method(*c.compressed->method),
        options(c.compressed->options) {}

  std::uint64_t elements() const { return content.elements(); }
  std::uint64_t payload_elements() const { return method.size(elements(), options); }
  std::uint64_t bytes() const { return payload_elements() * bytes_of(method.payload); }

  std::vector<float> tensor(GroupRank rank) const {
    std::vector<std::int16_t> values(elements());
    content.values(rank, 0, elements(), values.data());
    return {values.begin(), values.end()};
  }
  std::vector<std::byte> payload(std::span<const float> tensor) const {
    std::vector<std::byte> out(bytes());
    method.compress(tensor, options, out.data());
    return out;
  }
  std::vector<float> back(const std::byte* payload) const {
    std::vector<float> out(elements());
    method.decompress(payload, options, out);
    return out;
  }

  const TensorContent& content;
  const Compressor& method;
  const CompressionOptions& options;
};

// Sums of the ranks' contributions, and of their magnitudes.
struct Sums {
  explicit Sums(std::size_t n) : values(n), magnitudes(n) {}
  template <typename Values>
  void add(const Values& more) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<double>(more[i]);
      values[i] += value;
      magnitudes[i] += std::abs(value);
    }
  }
  std::vector<double> values, magnitudes;
};

// The number of elements off by more than `share` of the sum of magnitudes plus `slack`.
std::uint64_t count_off(const std::vector<double>& is, const Sums& sum, double share,
                        double slack) {
  std::uint64_t off = 0;
  for (std::size_t i = 0; i < is.size(); ++i)
    off += std::abs(is[i] - sum.values[i]) <= share * sum.magnitudes[i] + slack ? 0 : 1;
  return off;
}

}  // namespace

void fill_compressed(const RankCall& call, std::byte* work) {
  const Compressed c(call);
  const std::vector<std::byte> own = c.payload(c.tensor(call.rank));
  if (call.collective.func == Func::all_reduce) {
    std::memcpy(work, own.data(), own.size());
    return;
  }
  put_value(c.method.payload, work, kPoisonValue,
            c.payload_elements() * static_cast<std::uint64_t>(call.collective.size));
  std::memcpy(work + static_cast<std::size_t>(call.rank) * own.size(), own.data(), own.size());
}

Checked check_compressed(const RankCall& call, const std::byte* work) {
  const Compressed c(call);
  const bool gathers = call.collective.func == Func::all_gather;
  const int ranks = call.collective.size;
  Checked checked{
      c.payload_elements() * (gathers ? static_cast<std::uint64_t>(ranks) : 1) + c.elements(), 0};
  Sums truth(c.elements()), got(c.elements()), payloads(gathers ? 0 : c.payload_elements());
  double error = 0;
  for (GroupRank r = 0; r < ranks; ++r) {
    const std::vector<float> tensor = c.tensor(r);
    const std::vector<std::byte> payload = c.payload(tensor);
    truth.add(tensor);
    error += c.method.error(tensor, c.options);
    if (gathers) {
      const std::byte* at = work + static_cast<std::size_t>(r) * payload.size();
      const std::vector<std::byte> is(at, at + payload.size());  // copied to align it
      checked.wrong +=
          count_different(c.method.payload, is.data(), payload.data(), c.payload_elements());
      got.add(c.back(is.data()));
    } else {
      payloads.add(as_numbers(c.method.payload, payload.data(), c.payload_elements()));
      got.add(c.back(payload.data()));  // for the magnitudes only
    }
  }
  const double share = rounding(c.method.payload, gathers ? 1 : ranks);
  if (!gathers) {
    checked.wrong +=
        count_off(as_numbers(c.method.payload, work, c.payload_elements()), payloads, share, 0);
    const std::vector<float> sum = c.back(work);
    got.values.assign(sum.begin(), sum.end());
  }
  // The tolerance is the method's own error plus what the payloads' rounding adds.
  for (std::size_t i = 0; i < got.values.size(); ++i)
    checked.wrong +=
        std::abs(got.values[i] - truth.values[i]) <= error * (1 + 1e-6) + share * got.magnitudes[i]
            ? 0
            : 1;
  return checked;
}

}  // namespace ghostrank
