#include "emulator/verify/verify_compressed.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "collectives/compressor.h"
#include "collectives/layout.h"
#include "emulator/verify/elements.h"

namespace ghostrank {
namespace {

// What a compression method needs of a call. In the second round of a method, ranks take the sum of
// the first payloads to be what the tensors say, not what the first exchange gave, so that each
// call is checked by itself.
struct Compressed {
  explicit Compressed(const RankCall& c)
      : call(*c.compressed),
        content(call.tensor),
        method(*call.method),
        ranks(c.collective.size),
        round(call.options.round) {
    if (round == 0) return;
    for (GroupRank r = 0; r < ranks; ++r) {
      CompressionOptions first = call.of(r);
      first.round = 0;
      const std::vector<std::byte> own = payload_of(method, tensor(r), first);
      if (r == 0) {
        first_sum = own;
        continue;
      }
      add_elements(method.payload, first_sum.data(), own.data(),
                   own.size() / bytes_of(method.payload));
    }
  }

  CompressionOptions options(GroupRank rank) const {
    CompressionOptions own = call.of(rank);
    own.first_sum = first_sum;
    return own;
  }

  std::uint64_t elements() const { return content.elements(); }

  std::vector<float> tensor(GroupRank rank) const {
    if (call.gradients) {
      std::vector<float> drawn(elements());
      call.gradients->draw(call.of(rank).seed, drawn);
      return drawn;
    }
    std::vector<std::int16_t> values(elements());
    content.values(rank, 0, elements(), values.data());
    return {values.begin(), values.end()};
  }
  std::vector<std::byte> payload(GroupRank rank, std::span<const float> of) const {
    return payload_of(method, of, options(rank));
  }
  std::vector<float> back(std::span<const std::byte> payload) const {
    std::vector<float> out(elements());
    method.decompress(payload, options(0), out);
    return out;
  }
  std::uint64_t elements_in(std::span<const std::byte> payload) const {
    return payload.size() / bytes_of(method.payload);
  }
  // True if the tensor can be told from this round's payload.
  bool decodes() const { return round == method.rounds - 1; }

  const CompressedContent& call;
  const TensorContent& content;
  const Compressor& method;
  const int ranks, round;
  std::vector<std::byte> first_sum;
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
  const std::vector<std::byte> own = c.payload(call.rank, c.tensor(call.rank));
  if (call.collective.func == Func::all_reduce) {
    std::memcpy(work, own.data(), own.size());
    return;
  }
  const std::uint32_t element = bytes_of(c.method.payload);
  put_value(c.method.payload, work, kPoisonValue, work_elements(call.collective, call.rank));
  const Block place = Layout(call.collective).work(call.rank, call.rank);
  if (!own.empty()) std::memcpy(work + place.offset * element, own.data(), own.size());
}

Checked check_compressed(const RankCall& call, const std::byte* work) {
  const Compressed c(call);
  const bool gathers = call.collective.func != Func::all_reduce;
  const std::uint32_t element = bytes_of(c.method.payload);
  const Layout layout(call.collective);
  const std::uint64_t summed = gathers ? 0 : call.collective.count;
  Checked checked{c.elements() + summed, 0};
  Sums truth(c.elements()), got(c.elements()), payloads(summed);
  double error = 0;
  for (GroupRank r = 0; r < c.ranks; ++r) {
    const std::vector<float> tensor = c.tensor(r);
    const std::vector<std::byte> payload = c.payload(r, tensor);
    truth.add(tensor);
    error += c.method.error(tensor, c.options(r));
    if (gathers) {
      const std::byte* at = work + layout.work(call.rank, r).offset * element;
      const std::vector<std::byte> is(at, at + payload.size());  // copied to align it
      checked.elements += c.elements_in(payload);
      checked.wrong +=
          count_different(c.method.payload, is.data(), payload.data(), c.elements_in(payload));
      got.add(c.back(is));
    } else {
      payloads.add(as_numbers(c.method.payload, payload.data(), summed));
      if (c.decodes()) got.add(c.back(payload));  // for the magnitudes only
    }
  }
  const double share = rounding(c.method.payload, gathers ? 1 : c.ranks);
  if (!gathers) {
    checked.wrong += count_off(as_numbers(c.method.payload, work, summed), payloads, share, 0);
    if (!c.decodes()) return checked;
    const std::vector<float> sum = c.back({work, summed * element});
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
