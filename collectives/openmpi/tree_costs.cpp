// See openmpi/costs.h: costs of reduces, of the butterfly, and of broadcasts that cut the buffer.
#include <algorithm>

#include "collectives/common/powers.h"
#include "collectives/openmpi/costs.h"
#include "collectives/openmpi/openmpi.h"

namespace ghostrank::openmpi_costs {
namespace {

int levels(const Collective& c) { return floor_log2(c.size); }

int tree_levels(const Collective& c) { return ceil_log2(c.size); }

// The elements left of `count` after one halving per bit of `path`, the lowest bit first: a 0 keeps
// the lower half, which is the shorter one.
std::uint64_t halved(std::uint64_t count, unsigned path, int bits) {
  for (int i = 0; i < bits; ++i) count = (path >> i & 1) == 0 ? count / 2 : count - count / 2;
  return count;
}

// Elements and messages of a scatter of blocks of ceil(count / n) elements down a binomial tree.
Cost block_scatter(const Collective& c) {
  const std::uint64_t n = ranks(c), block = (c.count + n - 1) / n;
  Cost cost{tree_levels(c), 0, 0};
  for (std::uint64_t v = 1; v < n && v * block < c.count; ++v) {
    cost.bytes += std::min((v & -v) * block, c.count - v * block) * c.element_bytes;
    ++cost.messages;
  }
  return cost;
}

}  // namespace

Cost binary_reduce(const Collective& c) {
  return {reduce_tree_steps(binary_child, c.size), (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

Cost binomial_reduce(const Collective& c) {
  return {tree_levels(c), (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

Cost in_order_reduce(const Collective& c) {
  const bool away = c.root != c.size - 1;
  const std::uint64_t messages = ranks(c) - 1 + (away ? 1 : 0);
  return {reduce_tree_steps(in_order_child, c.size) + (away ? 1 : 0), messages * bytes(c),
          messages};
}

// The pair exchange as in the all-reduce, the halving, the window of survivor 0 if the root was
// folded, and the tree: a survivor sends up the window it has left at the level at which it differs
// from the root.
Cost rabenseifner_reduce(const Collective& c) {
  const std::uint64_t m = survivors(c), extra = ranks(c) - m;
  const std::uint64_t root = c.root;
  const bool paired = root < 2 * extra, folded = paired && root % 2 == 1;
  const std::uint64_t number = folded ? 0 : paired ? root / 2 : root - extra;
  std::uint64_t elements = (m - 1) * c.count + extra * (c.count + c.count - c.count / 2);
  if (folded) elements += c.count / m;
  for (int level = 0; level < levels(c); ++level)
    for (unsigned low = 0; low < 1U << level; ++low) {
      const unsigned differing = (static_cast<unsigned>(number) ^ 1U << level) & 1U << level;
      elements += halved(c.count, differing | low, level + 1);
    }
  const std::uint64_t messages = 3 * extra + m * levels(c) + (m - 1) + (folded ? 1 : 0);
  return {2 * levels(c) + (extra > 0 ? 2 : 0) + (folded ? 1 : 0), elements * c.element_bytes,
          messages, extra > 0};
}

// As the halving reduce-scatter, plus the blocks of survivors whose number differs from its
// reversal.
Cost butterfly(const Collective& c) {
  if (c.size == 1) return {};
  const std::uint64_t m = survivors(c), extra = ranks(c) - m;
  const std::uint64_t exchanged = m - (std::uint64_t{1} << (levels(c) + 1) / 2);
  return {levels(c) + (extra > 0 ? 2 : 0) + (exchanged > 0 ? 1 : 0),
          (ranks(c) * (ranks(c) - 1) + extra + exchanged) * bytes(c),
          m * levels(c) + 2 * extra + exchanged, true};
}

Cost split_binary(const Collective& c) {
  return {tree_steps(binary_child, c.size) + 1, (ranks(c) - 1) * bytes(c), 2 * (ranks(c) - 1),
          true};
}

// A position receives every subtree other than its own, from its partner or from a position that
// had one.
Cost scatter_all_gather(const Collective& c) {
  Cost cost = block_scatter(c);
  cost.bytes += (ranks(c) - 1) * bytes(c);
  for (int level = 0; level < tree_levels(c); ++level) {
    const std::uint64_t width = std::uint64_t{1} << level, whole = ranks(c) / width,
                        rest = ranks(c) % width;
    const std::uint64_t alone = rest > 0 ? (whole % 2 == 0 ? rest : 0) : whole % 2 * width;
    cost.messages += ranks(c) - alone;
    cost.steps += 1 + (rest > 0 ? level : 0);
  }
  cost.most_steps = true;
  return cost;
}

Cost scatter_ring(const Collective& c) {
  Cost cost = block_scatter(c);
  cost.bytes += (ranks(c) - 1) * bytes(c);
  cost.messages += ranks(c) * (ranks(c) - 1);
  cost.steps += c.size - 1;
  cost.most_steps = true;
  return cost;
}

}  // namespace ghostrank::openmpi_costs
