// The plays of the agent checker: a single one, those that test a claim, those that prove a scheme.
#include "collectives/check/agents/checker.h"

#include <algorithm>
#include <exception>

#include "collectives/check/agents/world.h"

namespace ghostrank {
namespace {

using checking::AgentFailure, checking::AgentWorld, checking::Dice, checking::kMicrosecond;

// The parts of one kind of fault, in the order of check_claims().
struct Kind {
  std::string_view name;
  bool Survives::*claimed;
  double Misfortunes::*rate;
  std::uint64_t AgentReport::*met;
};
constexpr std::array<Kind, 4> kKinds{{
    {"loss", &Survives::loss, &Misfortunes::loss, &AgentReport::lost},
    {"duplicates", &Survives::duplicates, &Misfortunes::duplicates, &AgentReport::doubled},
    {"delay", &Survives::delay, &Misfortunes::delay, &AgentReport::late},
    {"reordering", &Survives::reordering, &Misfortunes::reordering, &AgentReport::overtaken},
}};

constexpr std::array<double, 3> kRates{0.02, 0.1, 0.3};

// 0, 10 us (a few round trips) or 5 ms (longer than a scheme's time-out).
Picoseconds some_pause(Dice& dice) {
  constexpr std::array<Picoseconds, 3> kPauses{0, 10 * kMicrosecond, 5'000 * kMicrosecond};
  return kPauses[dice.below(kPauses.size())];
}

// Every third play has no faults of packets. Of the others, about half have all and half a single
// one. Plays with seed % 6 == 0 are undisturbed and so test traffic().
AgentCheckOptions variation(std::uint64_t seed, int ranks) {
  Dice dice(seed ^ 0x5eed);
  AgentCheckOptions options;
  options.seed = seed;
  if (seed % 3 != 0) {
    const bool alone = dice.happens(0.5);
    const std::size_t one = dice.below(kKinds.size());
    for (std::size_t k = 0; k < kKinds.size(); ++k)
      if (!alone || k == one) options.misfortunes.*kKinds[k].rate = kRates[dice.below(3)];
  }
  if (seed % 6 == 0) return options;
  options.pause = some_pause(dice);
  options.overlap = 1 + static_cast<int>(dice.below(3));
  options.no_room = dice.happens(0.5) ? 0.1 : 0;
  options.slow = dice.happens(0.5) ? 0.1 : 0;
  options.real_data = !dice.happens(0.1);
  if (dice.happens(0.3)) options.switches = {.failure = 0.005 / ranks, .away = some_pause(dice)};
  return options;
}

// Sparsity of the tensors in a play; dense if the ranks cannot hold the drawn one.
Sparsity some_sparsity(std::uint64_t seed, int ranks) {
  Dice dice(seed ^ 0x7e45085);
  constexpr std::array<double, 6> kDensities{0, 0.01, 0.1, 0.25, 0.5, 0.9};
  constexpr std::array<std::uint64_t, 5> kBlocks{1, 7, 32, 100, 256};
  const Sparsity drawn{kDensities[dice.below(kDensities.size())],
                       kBlocks[dice.below(kBlocks.size())], static_cast<Overlap>(dice.below(3))};
  const bool sparse = dice.happens(0.5) && drawn.refuses(ranks).empty();
  return sparse ? drawn : Sparsity{};
}

Collective of_type(Collective c, DataType type) {
  c.element_bytes = bytes_of(type);
  return c;
}

}  // namespace

std::vector<Call> calls_like(const Collective& c, DataType type, int calls, std::uint32_t first) {
  std::vector<Call> list;
  for (int i = 0; i < calls; ++i) {
    Call& call = list.emplace_back(Call{first + i, of_type(c, type), type});
    call.collective.root = (c.root + i) % c.size;
    call.collective.target = (c.target + i) % c.size;
  }
  return list;
}

AgentReport check(const Ends& ends, std::span<const Call> calls, AgentCheckOptions options) {
  AgentWorld world(ends, calls, options);
  try {
    world.run();
    world.report().ok = true;
  } catch (const AgentFailure& failure) {
    world.report().error = failure.text;
    world.report().at = failure.at;
  } catch (const std::exception& thrown) {
    world.report().at = world.here();
    world.report().error = world.named(world.here().party) + " throws: " + thrown.what() +
                           " (seed " + std::to_string(options.seed) + ")";
  }
  return world.report();
}

std::array<Claim, 4> check_claims(const Ends& ends, std::span<const Call> calls, int seeds,
                                  AgentCheckOptions options) {
  std::array<Claim, 4> claims;
  const Survives survives = ends.survives();
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    Claim& claim = claims[k];
    claim.misfortune = kKinds[k].name;
    claim.claimed = survives.*kKinds[k].claimed;
    for (int i = 0; claim.claimed && i < seeds; ++i) {
      AgentCheckOptions one = options;
      one.seed = options.seed + i;
      one.misfortunes = {};
      one.misfortunes.*kKinds[k].rate = kRates[i % kRates.size()];
      claim.report = check(ends, calls, one);
      claim.met += claim.report.*kKinds[k].met;
      ++claim.plays;
      if (!claim.report.ok) break;
    }
  }
  return claims;
}

std::string Claim::text() const {
  if (!claimed) return "not claimed";
  if (!report.ok) return "does not hold: " + report.error;
  return "holds: " + std::to_string(plays) + " plays, " + std::to_string(met) +
         " packets that met it";
}

AgentProof prove(const Ends& ends, Collective c, int plays) {
  AgentProof proof;
  std::vector<DataType> types;
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    const std::string why = ends.refuses({0, of_type(c, type), type});
    if (why.empty())
      types.push_back(type);
    else
      proof.refused = why;
  }
  if (types.empty()) return proof;
  for (int i = 0; i < plays; ++i) {
    const std::uint64_t seed = i;
    // Spreads the undisturbed plays, every sixth one, over all data types.
    const DataType type = types[(seed + seed / 6) % types.size()];
    std::vector<Call> calls = calls_like(c, type, 3);
    const Sparsity sparsity = reduces(c.func) ? some_sparsity(seed, c.size) : Sparsity{};
    for (Call& call : calls) {
      call.sparsity = sparsity;
      if (!ends.refuses(call).empty()) call.sparsity = {};
    }
    proof.report = check(ends, calls, variation(seed, c.size));
    ++proof.plays;
    if (!proof.report.ok) {
      proof.report.error = std::string(name_of(type)) + ": " + proof.report.error;
      break;
    }
  }
  return proof;
}

}  // namespace ghostrank
