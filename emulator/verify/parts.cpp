#include "emulator/verify/parts.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "collectives/common/dice.h"
#include "collectives/layout.h"
#include "emulator/verify/compressed_call.h"
#include "emulator/verify/elements.h"

namespace ghostrank {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

struct Parts {
  explicit Parts(const RankCall& call)
      : c(call),
        ranks(static_cast<std::uint64_t>(c.ranks)),
        part((c.elements() + ranks - 1) / ranks),
        payload_bytes(call.collective.count * bytes_of(c.method.payload)) {}

  // With rank r's draws for the part of rank `of`; `of` == ranks: for rank r's sum.
  CompressionOptions options(GroupRank r, GroupRank of) const {
    CompressionOptions own = c.options(r);
    own.seed = checking::mix(own.seed + of + 1);
    return own;
  }
  Floats cut(const Floats& tensor, GroupRank of) const {
    Floats cut(part);
    const std::uint64_t first = std::min<std::uint64_t>(tensor.size(),
                                                        static_cast<std::uint64_t>(of) * part),
                        end = std::min<std::uint64_t>(tensor.size(), first + part);
    std::copy(tensor.begin() + static_cast<std::ptrdiff_t>(first),
              tensor.begin() + static_cast<std::ptrdiff_t>(end), cut.begin());
    return cut;
  }
  Bytes payload(const Floats& cut, GroupRank r, GroupRank of) const {
    return payload_of(c.method, cut, options(r, of));
  }
  Floats back(const Bytes& payload) const {
    Floats out(part);
    c.method.decompress(payload, c.options(0), out);
    return out;
  }
  // Block `of` of the payloads in a buffer, copied to align it.
  Bytes at(const std::byte* buffer, GroupRank of) const {
    const std::byte* first = buffer + of * payload_bytes;
    return {first, first + payload_bytes};
  }
  // The sum that rank `of` makes of its part of these tensors.
  Floats sum(const std::vector<Floats>& tensors, GroupRank of) const {
    Floats sum(part);
    for (GroupRank r = 0; r < c.ranks; ++r) {
      const Floats one = back(payload(cut(tensors[static_cast<std::size_t>(r)], of), r, of));
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    }
    return sum;
  }
  std::vector<Floats> tensors() const {
    std::vector<Floats> all;
    for (GroupRank r = 0; r < c.ranks; ++r) all.push_back(c.tensor(r));
    return all;
  }

  const CompressedCall c;
  const std::uint64_t ranks, part, payload_bytes;
};

std::uint64_t count_other(const Parts& p, const Bytes& is, const Bytes& expected) {
  return count_different(p.c.method.payload, is.data(), expected.data(), p.c.elements_in(expected));
}

}  // namespace

void fill_parts_input(const RankCall& call, std::byte* input) {
  const Parts p(call);
  const Floats tensor = p.c.own_tensor();
  for (GroupRank of = 0; of < p.c.ranks; ++of) {
    const Bytes payload = p.payload(p.cut(tensor, of), call.rank, of);
    std::memcpy(input + static_cast<std::uint64_t>(of) * p.payload_bytes, payload.data(),
                payload.size());
  }
}

void fill_parts(const RankCall& call, std::byte* work) {
  const Parts p(call);
  put_value(p.c.method.payload, work, kPoisonValue, work_elements(call.collective, call.rank));
  if (p.c.call.stage == 0) return;
  Floats sum(p.part);
  if (p.c.call.states) {
    const std::span<const std::byte> received =
        p.c.call.states->received(p.c.exchange_of(call.rank));
    std::memcpy(sum.data(), received.data(), received.size());
  } else {
    sum = p.sum(p.tensors(), call.rank);
  }
  const Bytes payload = p.payload(sum, call.rank, p.c.ranks);
  std::memcpy(work + static_cast<std::uint64_t>(call.rank) * p.payload_bytes, payload.data(),
              payload.size());
}

void finish_parts(const RankCall& call, const std::byte* work) {
  const Parts p(call);
  const ExchangeOf of = p.c.exchange_of(call.rank);
  Floats all;
  for (GroupRank r = 0; r < p.c.ranks; ++r) {
    const Floats one = p.back(p.at(work, r));
    if (p.c.call.stage == 1) {
      all.insert(all.end(), one.begin(), one.end());
      continue;
    }
    all.resize(p.part);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i];
  }
  if (p.c.call.stage == 0) return p.c.call.states->receive(of, {}, std::as_bytes(std::span(all)));
  all.resize(p.c.elements());
  p.c.call.states->finish(of, p.c.tensor(call.rank), all, false);
}

Checked check_parts(const RankCall& call, const std::byte* work) {
  const Parts p(call);
  const std::vector<Floats> tensors = p.tensors();
  Checked checked;
  for (GroupRank r = 0; r < p.c.ranks; ++r) {
    // First every rank's payload for the part of this one; then the sum of every part.
    const GroupRank of = p.c.call.stage == 0 ? call.rank : r;
    Sums truth(p.part);
    double error = 0;
    for (GroupRank from = 0; from < p.c.ranks; ++from) {
      if (p.c.call.stage == 0 && from != r) continue;
      const Floats cut = p.cut(tensors[static_cast<std::size_t>(from)], of);
      truth.add(cut);
      error += p.c.method.error(cut, p.options(from, of));
    }
    Bytes expected;
    if (p.c.call.stage == 0) {
      expected = p.payload(p.cut(tensors[static_cast<std::size_t>(r)], of), r, of);
    } else {
      const Floats sum = p.sum(tensors, of);
      expected = p.payload(sum, r, p.c.ranks);
      error += p.c.method.error(sum, p.options(r, p.c.ranks));
    }
    const Bytes is = p.at(work, r);
    checked.elements += p.c.elements_in(expected) + p.part;
    checked.wrong += count_other(p, is, expected);
    const Floats back = p.back(is);
    checked.wrong +=
        count_apart({back.begin(), back.end()}, truth, error, std::vector<double>(p.part), 0);
  }
  return checked;
}

}  // namespace ghostrank
