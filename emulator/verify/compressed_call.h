// A call that exchanges compressed payloads, as its ranks see it in verify mode. In later rounds of
// a method, the sums of earlier payloads are computed from the tensors, not taken from the
// exchanges, so that each call is checked by itself; where ranks have states, they are what this
// rank received.
//
// Units: elements. Threading: one owner; refers to the call.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/compressor.h"
#include "emulator/verify/gradient_states.h"
#include "emulator/verify/verify.h"
#include "switch/assert.h"

namespace ghostrank {

struct CompressedCall {
  explicit CompressedCall(const RankCall& c)
      : call(*c.compressed),
        content(call.tensor),
        method(*call.method),
        rank(c.rank),
        ranks(c.collective.size),
        round(call.options.round) {
    // The second call of an exchange of parts is no round of the method.
    if (round == 0 || method.rounds == 1) return;
    if (call.states) {
      const std::span<const std::byte> received = call.states->received(exchange_of(rank));
      first_sum.assign(received.begin(), received.end());
      GHOSTRANK_ASSERT(first_sum.size() == bytes_before());
      return;
    }
    for (int before = 0; before < round; ++before) {
      std::vector<std::byte> sum;
      for (GroupRank r = 0; r < ranks; ++r) {
        CompressionOptions then = options(r);
        then.round = before;
        const std::vector<std::byte> own = payload_of(method, tensor(r), then);
        if (r == 0)
          sum = own;
        else
          add_elements(method.payload, sum.data(), own.data(), elements_in(own));
      }
      first_sum.insert(first_sum.end(), sum.begin(), sum.end());
    }
  }

  CompressionOptions options(GroupRank r) const {
    CompressionOptions own = call.of(r);
    own.first_sum = first_sum;
    return own;
  }

  std::uint64_t elements() const { return content.elements(); }

  // False of a rank that has states and is not yet as far.
  bool begun(GroupRank r) const { return !call.states || call.states->begun(exchange_of(r)); }
  // The tensor that the rank compresses; with states, the rank must have begun the exchange.
  std::vector<float> tensor(GroupRank r) const {
    if (!call.states) return gradient(r);
    const std::span<const float> given = call.states->given(exchange_of(r));
    return {given.begin(), given.end()};
  }
  // As tensor() of this rank; with states, begins its exchange.
  std::vector<float> own_tensor() const {
    if (!call.states) return gradient(rank);
    const std::span<const float> given = call.states->give(exchange_of(rank), gradient(rank));
    return {given.begin(), given.end()};
  }
  ExchangeOf exchange_of(GroupRank r) const { return {call.number, call.iteration, r}; }

  std::vector<float> gradient(GroupRank r) const {
    if (call.gradients) {
      std::vector<float> drawn(elements());
      call.gradients->draw(call.of(r).seed, call.drawn_in, call.first, drawn.size(), drawn);
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
  // The rank's own part of the decompressed sum: its payload decompressed alone or, where a payload
  // means nothing without those of the others, the mean.
  std::vector<float> own_part(const std::vector<float>& sum) const {
    std::vector<float> own = tensor(rank);
    if (method.rounds == 1) return back(payload(rank, own));
    if (round == 0) return own;  // sent as it is
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = sum[i] / static_cast<float>(ranks);
    return own;
  }
  // True if no later round sends anything, so that the tensor can be decompressed.
  bool ends() const {
    CompressionOptions later = call.options;
    for (later.round = round + 1; later.round < method.rounds; ++later.round)
      if (method.size(elements(), later) > 0) return false;
    return true;
  }

  // Bytes of the sums of all rounds before this one.
  std::uint64_t bytes_before() const {
    std::uint64_t elements_before = 0;
    CompressionOptions then = call.options;
    for (then.round = 0; then.round < round; ++then.round)
      elements_before += method.size(elements(), then);
    return elements_before * bytes_of(method.payload);
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
inline std::uint64_t count_off(const std::vector<double>& is, const Sums& sum, double share,
                               double slack) {
  std::uint64_t off = 0;
  for (std::size_t i = 0; i < is.size(); ++i)
    off += std::abs(is[i] - sum.values[i]) <= share * sum.magnitudes[i] + slack ? 0 : 1;
  return off;
}

// The number of elements of a decompressed sum that are further from the truth than the method's
// own `error` plus what rounding adds: `share` of the parts' magnitudes.
inline std::uint64_t count_apart(const std::vector<double>& is, const Sums& truth, double error,
                                 const std::vector<double>& magnitudes, double share) {
  std::uint64_t apart = 0;
  for (std::size_t i = 0; i < is.size(); ++i) {
    const double most = error * (1 + 1e-6) + share * magnitudes[i];
    apart += std::abs(is[i] - truth.values[i]) <= most ? 0 : 1;
  }
  return apart;
}

}  // namespace ghostrank
