#include "emulator/verify/compressed.h"

#include <cstring>
#include <optional>

#include "collectives/layout.h"
#include "emulator/verify/compressed_call.h"
#include "emulator/verify/elements.h"
#include "emulator/verify/parts.h"
#include "switch/assert.h"

namespace ghostrank {
namespace {

bool in_parts(const RankCall& call) {
  return call.compressed->exchange == PayloadExchange::all_to_all;
}

// A payload in the work buffer, and whose it is.
struct Gathered {
  GroupRank owner = 0;
  std::uint64_t offset = 0, count = 0;  // elements
};

// The payloads that the call gives every rank: one of a broadcast, otherwise those of all.
std::vector<Gathered> gathered_by(const RankCall& call) {
  const Collective& c = call.collective;
  if (c.func == Func::broadcast) return {{c.root, 0, c.count}};
  const Layout layout(c);
  std::vector<Gathered> all;
  for (GroupRank r = 0; r < c.size; ++r) {
    const Block block = layout.work(call.rank, r);
    all.push_back({r, block.offset, block.count});
  }
  return all;
}

// A payload in the work buffer, copied to align it.
std::vector<std::byte> payload_at(const std::byte* work, const Gathered& one,
                                  std::uint32_t element) {
  const std::byte* at = work + one.offset * element;
  return {at, at + one.count * element};
}

Checked check_summed(const CompressedCall& c, std::uint64_t summed, const std::byte* work,
                     double bound) {
  Checked checked{c.elements() + summed, 0};
  Sums truth(c.elements()), parts(c.elements()), payloads(summed);
  double error = 0;
  for (GroupRank r = 0; r < c.ranks; ++r) {
    const std::vector<float> tensor = c.tensor(r);
    const std::vector<std::byte> payload = c.payload(r, tensor);
    truth.add(tensor);
    error += c.method.error(tensor, c.options(r));
    payloads.add(as_numbers(c.method.payload, payload.data(), summed));
    if (c.ends()) parts.add(c.back(payload));  // for the magnitudes only
  }
  const double share = rounding(c.method.payload, c.ranks);
  checked.wrong += count_off(as_numbers(c.method.payload, work, summed), payloads, share, bound);
  if (!c.ends()) return checked;
  const std::vector<float> sum = c.back({work, summed * bytes_of(c.method.payload)});
  checked.wrong +=
      count_apart({sum.begin(), sum.end()}, truth, error + bound, parts.magnitudes, share);
  return checked;
}

Checked check_gathered(const CompressedCall& c, const RankCall& call, const std::byte* work) {
  Checked checked{c.elements(), 0};
  Sums truth(c.elements()), got(c.elements());
  double error = 0;
  for (const Gathered& one : gathered_by(call)) {
    const std::vector<std::byte> is = payload_at(work, one, bytes_of(c.method.payload));
    if (!c.begun(one.owner)) {  // so it cannot have sent anything
      checked.elements += c.elements_in(is);
      checked.wrong += c.elements_in(is);
      continue;
    }
    const std::vector<float> tensor = c.tensor(one.owner);
    const std::vector<std::byte> payload = c.payload(one.owner, tensor);
    truth.add(tensor);
    error += c.method.error(tensor, c.options(one.owner));
    checked.elements += c.elements_in(payload);
    checked.wrong +=
        is.size() != payload.size()
            ? c.elements_in(payload)
            : count_different(c.method.payload, is.data(), payload.data(), c.elements_in(payload));
    got.add(c.back(is));
  }
  checked.wrong += count_apart(got.values, truth, error, got.magnitudes, 0);
  return checked;
}

}  // namespace

void fill_compressed_input(const RankCall& call, std::byte* input) {
  if (in_parts(call)) fill_parts_input(call, input);
}

void fill_compressed(const RankCall& call, std::byte* work) {
  if (in_parts(call)) return fill_parts(call, work);
  const CompressedCall c(call);
  if (call.collective.func == Func::all_reduce) {
    const std::vector<std::byte> own = c.payload(call.rank, c.own_tensor());
    std::memcpy(work, own.data(), own.size());
    return;
  }
  put_value(c.method.payload, work, kPoisonValue, work_elements(call.collective, call.rank));
  for (const Gathered& one : gathered_by(call)) {
    if (one.owner != call.rank) continue;
    const std::vector<std::byte> own = c.payload(call.rank, c.own_tensor());
    GHOSTRANK_ASSERT(own.size() == one.count * bytes_of(c.method.payload));
    if (!own.empty())
      std::memcpy(work + one.offset * bytes_of(c.method.payload), own.data(), own.size());
  }
}

void finish_compressed(const RankCall& call, const std::byte* work) {
  if (!call.compressed->states) return;
  if (in_parts(call)) return finish_parts(call, work);
  const CompressedCall c(call);
  GradientStates& states = *c.call.states;
  const ExchangeOf of = c.exchange_of(call.rank);
  const std::uint32_t element = bytes_of(c.method.payload);
  if (call.collective.func == Func::all_reduce) {
    const std::span<const std::byte> sum(work, call.collective.count * element);
    if (!c.ends()) return states.receive(of, c.first_sum, sum);
    const std::vector<float> all = c.back(sum);
    return states.finish(of, c.own_part(all), all, false);
  }
  for (const Gathered& one : gathered_by(call))
    states.hear(of, one.owner, c.back(payload_at(work, one, element)));
  const std::vector<std::vector<float>>* heard = states.all_heard(of);
  if (!heard) return;  // other ranks broadcast later
  std::vector<float> sum(c.elements());
  for (const std::vector<float>& one : *heard)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  if (c.method.majority)
    for (float& x : sum) x = x >= 0 ? 1.0f : -1.0f;
  states.finish(of, (*heard)[static_cast<std::size_t>(call.rank)], sum, c.method.majority);
}

Checked check_compressed(const RankCall& call, const std::byte* work) {
  if (in_parts(call)) return check_parts(call, work);
  const CompressedCall c(call);
  if (call.collective.func == Func::all_reduce)
    return check_summed(c, call.collective.count, work, call.bound);
  return check_gathered(c, call, work);
}

}  // namespace ghostrank
