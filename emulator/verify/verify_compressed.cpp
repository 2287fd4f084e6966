#include "emulator/verify/verify_compressed.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "collectives/compressor.h"
#include "collectives/layout.h"
#include "emulator/verify/elements.h"
#include "emulator/verify/gradient_states.h"

namespace ghostrank {
namespace {

// What a compression method needs of a call. In the second round of a method, ranks take the sum of
// the first payloads to be what the tensors say, not what the first exchange gave, so that each
// call is checked by itself; where ranks have states, it is what this rank received.
struct Compressed {
  explicit Compressed(const RankCall& c)
      : call(*c.compressed),
        content(call.tensor),
        method(*call.method),
        rank(c.rank),
        ranks(c.collective.size),
        round(call.options.round) {
    if (round == 0) return;
    if (call.states) {
      const std::span<const std::byte> received = call.states->first_sum(exchange_of(rank));
      first_sum.assign(received.begin(), received.end());
      return;
    }
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

  CompressionOptions options(GroupRank r) const {
    CompressionOptions own = call.of(r);
    own.first_sum = first_sum;
    return own;
  }

  std::uint64_t elements() const { return content.elements(); }

  // What the rank compresses; with states, of a rank that has begun.
  std::vector<float> tensor(GroupRank r) const {
    if (!call.states) return gradient(r);
    const std::span<const float> given = call.states->given(exchange_of(r));
    return {given.begin(), given.end()};
  }
  // Begins the exchange of this rank.
  std::vector<float> own_tensor() const {
    if (!call.states) return gradient(rank);
    const std::span<const float> given = call.states->give(exchange_of(rank), gradient(rank));
    return {given.begin(), given.end()};
  }
  ExchangeOf exchange_of(GroupRank r) const { return {call.number, call.iteration, r}; }

  std::vector<float> gradient(GroupRank r) const {
    if (call.gradients) {
      std::vector<float> drawn(elements());
      call.gradients->draw(call.of(r).seed, drawn);
      return drawn;
    }
    std::vector<std::int16_t> values(elements());
    content.values(r, 0, elements(), values.data());
    return {values.begin(), values.end()};
  }
  std::vector<std::byte> payload(GroupRank r, std::span<const float> of) const {
    return payload_of(method, of, options(r));
  }
  std::vector<float> back(std::span<const std::byte> payload) const {
    std::vector<float> out(elements());
    method.decompress(payload, options(0), out);
    return out;
  }
  std::uint64_t elements_in(std::span<const std::byte> payload) const {
    return payload.size() / bytes_of(method.payload);
  }
  // What the rank's own tensor counts for in the decompressed sum: what its payload says alone, or
  // the mean where payloads say nothing without those of the others.
  std::vector<float> own_part(const std::vector<float>& sum) const {
    std::vector<float> own = tensor(rank);
    if (method.rounds == 1) return back(payload(rank, own));
    if (!decodes()) return own;  // sent as it is
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = sum[i] / static_cast<float>(ranks);
    return own;
  }
  // True if the tensor can be told from this round's payload.
  bool decodes() const { return round == method.rounds - 1; }
  // True if no other round follows, as none does where a matrix is a vector.
  bool ends() const {
    CompressionOptions next = call.options;
    next.round = round + 1;
    return decodes() || method.size(elements(), next) == 0;
  }

  const CompressedContent& call;
  const TensorContent& content;
  const Compressor& method;
  const GroupRank rank;
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
  const std::vector<std::byte> own = c.payload(call.rank, c.own_tensor());
  if (call.collective.func == Func::all_reduce) {
    std::memcpy(work, own.data(), own.size());
    return;
  }
  const std::uint32_t element = bytes_of(c.method.payload);
  put_value(c.method.payload, work, kPoisonValue, work_elements(call.collective, call.rank));
  const Block place = Layout(call.collective).work(call.rank, call.rank);
  if (!own.empty()) std::memcpy(work + place.offset * element, own.data(), own.size());
}

void finish_compressed(const RankCall& call, const std::byte* work) {
  if (!call.compressed->states) return;
  const Compressed c(call);
  GradientStates& states = *c.call.states;
  const ExchangeOf of = c.exchange_of(call.rank);
  const std::uint32_t element = bytes_of(c.method.payload);
  if (call.collective.func == Func::all_reduce) {
    const std::span<const std::byte> sum(work, call.collective.count * element);
    if (!c.ends()) return states.keep_first_sum(of, {sum.begin(), sum.end()});
    const std::vector<float> all = c.back(sum);
    return states.finish(of, c.own_part(all), all, false);
  }
  const Layout layout(call.collective);
  std::vector<float> own, sum(c.elements());
  for (GroupRank r = 0; r < c.ranks; ++r) {
    const Block place = layout.work(call.rank, r);
    const std::byte* at = work + place.offset * element;
    std::vector<float> back = c.back(std::vector<std::byte>(at, at + place.count * element));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += back[i];
    if (r == call.rank) own = std::move(back);
  }
  if (c.method.majority)
    for (float& x : sum) x = x >= 0 ? 1.0f : -1.0f;
  states.finish(of, own, sum, c.method.majority);
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
