#include "collectives/node_links.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace ghostrank {
namespace {

// Lanes of the hybrid cube mesh; `lanes` of the node with more of them.
struct Pair {
  int a, b, lanes;
};
constexpr std::array<Pair, 16> kCubeMesh{{{0, 1, 1},
                                          {0, 2, 1},
                                          {0, 3, 2},
                                          {0, 4, 2},
                                          {1, 2, 2},
                                          {1, 3, 1},
                                          {1, 5, 2},
                                          {2, 3, 2},
                                          {2, 6, 1},
                                          {3, 7, 1},
                                          {4, 5, 1},
                                          {4, 6, 1},
                                          {4, 7, 2},
                                          {5, 6, 2},
                                          {5, 7, 1},
                                          {6, 7, 2}}};
constexpr double kLane1 = 160e9, kLane2 = 200e9;  // NVLink 1 and 2

NodeLinks cube_mesh(std::string_view name, double lane, bool doubled) {
  NodeLinks links = unlinked(std::string(name), 8);
  for (const Pair& pair : kCubeMesh)
    links.connect(pair.a, pair.b, lane * (doubled ? pair.lanes : 1));
  return links;
}

}  // namespace

void NodeLinks::connect(int a, int b, double rate) {
  bps[static_cast<std::size_t>(a * gpus + b)] = rate;
  bps[static_cast<std::size_t>(b * gpus + a)] = rate;
}

NodeLinks unlinked(std::string name, int gpus) {
  const auto n = static_cast<std::size_t>(gpus);
  return {std::move(name), gpus, std::vector<double>(n * n)};
}

std::vector<std::string_view> named_node_links() { return {"dgx-1p", "dgx-1v"}; }

NodeLinks node_links(std::string_view name) {
  if (name == "dgx-1p") return cube_mesh(name, kLane1, false);
  if (name == "dgx-1v") return cube_mesh(name, kLane2, true);
  throw std::invalid_argument("there is no node '" + std::string(name) + "'");
}

NodeLinks links_among(const NodeLinks& all, const std::vector<int>& gpus) {
  NodeLinks some = unlinked(all.name, static_cast<int>(gpus.size()));
  for (int a = 0; a < some.gpus; ++a)
    for (int b = 0; b < a; ++b)
      some.connect(
          a, b, all.between(gpus[static_cast<std::size_t>(a)], gpus[static_cast<std::size_t>(b)]));
  return some;
}

}  // namespace ghostrank
