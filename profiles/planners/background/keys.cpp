// What a job file says of background, key by key.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "profiles/planners/background/background.h"
#include "profiles/planners/background/pattern.h"
#include "profiles/workload/program.h"

namespace ghostrank {
namespace {

constexpr std::array kKeys{
    Key{"pattern", KeyType::choice, kRequired,
        "checkpoint: ranks write weights and optimizer state; data: ranks read samples; between "
        "ranks of different nodes: incast: several send to rank 0; permutation: each sends to one "
        "and receives from one, drawn from run.seed; bisection: each half of the nodes sends to "
        "the other",
        0, 0, "checkpoint data incast permutation bisection"},
    Key{"fan_in", KeyType::integer, "0",
        "senders of an incast, in turn over the other nodes; 0: one of every other node", 0, 1e6},
    Key{"every", KeyType::integer, "1",
        "period in steps; it happens in the last step of each, counted from the first one played, "
        "warm-up included",
        1, 1e5},
    Key{"over", KeyType::integer, "1", "steps that share the bytes: that one and those after it", 1,
        1e5},
    Key{"bytes", KeyType::size, "0",
        "checkpoint: of all ranks together; data: of one sample; 0: what the model says "
        "(parameters and optimizer; 8 bytes per token); incast, permutation, bisection: of one "
        "sender; 0: what its rate carries while a step computes",
        0, 1LL << 50},
    Key{"rate", KeyType::rate, "0",
        "at which a rank writes, is served or sends; 0: as fast as the fabric", 0, 1e18},
    Key{"chunk", KeyType::size, "4MiB", "largest message", 1, 1LL << 40},
    Key{"at_once", KeyType::integer, "1", "messages of a rank in flight at once", 1, kMaxAtOnce},
    Key{"blocking", KeyType::boolean, "false",
        "whether it begins only after the step's compute; if not, it overlaps the step"},
};

constexpr std::array<std::string_view, 5> kPatterns{"checkpoint", "data", "incast", "permutation",
                                                    "bisection"};  // by Pattern

// Refuses keys that mean nothing to the pattern, and a pattern whose size nothing gives.
void check_keys(const Settings& in, const Background& b) {
  const std::string pattern = "pattern: " + name_of(b.pattern);
  if (b.fan_in > 0 && b.pattern != Pattern::incast)
    fail(in.at("fan_in").mark,
         "fan_in means nothing to " + pattern + "; leave it out, or use pattern: incast");
  if (b.at_once > 1 && is_one_to_one(b.pattern))
    fail(in.at("at_once").mark, "at_once means nothing to " + pattern +
                                    ", whose messages leave one after the other; leave it out");
  if (!is_stored(b.pattern) && b.bytes == 0 && b.rate_bps == 0)
    fail(in.at("pattern").mark,
         pattern + " has neither bytes nor a rate; add one, as in {" + pattern + ", bytes: 64MiB}");
}

}  // namespace

std::span<const Key> background_keys() { return kKeys; }

std::string name_of(Pattern pattern) {
  return std::string(kPatterns.at(static_cast<std::size_t>(pattern)));
}

Pattern pattern_named(std::string_view text) {
  return static_cast<Pattern>(std::find(kPatterns.begin(), kPatterns.end(), text) -
                              kPatterns.begin());
}

std::vector<Background> read_background(const Setting& setting) {
  if (!setting.raw || setting.raw->kind == YamlValue::Kind::null) return {};
  if (!setting.raw->is_list())
    fail(setting.mark, "background is " + description(*setting.raw) +
                           "; write a list, as in [{pattern: checkpoint, every: 100}]");
  std::vector<Background> out;
  for (const YamlValue& one : setting.raw->children) {
    const Settings in(one, kKeys, "background");
    Background b;
    b.pattern = pattern_named(in.text("pattern"));
    b.fan_in = in.small("fan_in");
    b.every = in.small("every");
    b.over = in.small("over");
    if (b.over > b.every)
      fail(in.at("over").mark, "over is " + std::to_string(b.over) + " but every " +
                                   std::to_string(b.every) +
                                   ": one would begin before the last has ended; lower over");
    b.bytes = static_cast<std::uint64_t>(in.number("bytes"));
    b.rate_bps = in.number("rate");
    b.chunk = static_cast<std::uint64_t>(in.number("chunk"));
    b.at_once = in.small("at_once");
    b.blocking = in.boolean("blocking");
    b.source = location(one.mark);
    check_keys(in, b);
    out.push_back(std::move(b));
  }
  return out;
}

}  // namespace ghostrank
