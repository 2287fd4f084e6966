#include "collectives/schemes/keyed/keys.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>

namespace ghostrank {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMixedBound = 101;  // BYTEPS_MIXED_MODE_BOUND

std::uint64_t djb2(const std::string& text) {
  std::uint64_t h = 5381;
  for (const char c : text) h = h * 33 + static_cast<std::uint64_t>(c);
  return h;
}

std::uint64_t sdbm(const std::string& text) {
  std::uint64_t h = 0;
  for (const char c : text) h = static_cast<std::uint64_t>(c) + (h << 6) + (h << 16) - h;
  return h;
}

// n^2 + k n - 2 k, with n workers that also serve and k machines that only serve.
double denominator(int n, int k) {
  return static_cast<double>(n) * n + static_cast<double>(k) * n - 2.0 * k;
}

int mixed_server(std::uint64_t key, int servers, int beside) {
  const int n = beside, k = servers - beside;
  if (k < 1 || n < 1)
    throw std::invalid_argument(
        "key_hash mixed needs servers on machines of their own and beside GPUs; use "
        "servers.placement=mixed with servers.count of 1 or more");
  const double ratio = n == 1 ? 0 : 2.0 * k * (n - 1) / denominator(n, k);
  if (ratio > 1)
    throw std::invalid_argument("key_hash mixed takes at most as many servers as nodes (" +
                                std::to_string(n) + ")");
  const std::uint64_t r = djb2(std::to_string(key)) % kMixedBound;
  const std::uint64_t again = djb2(std::to_string(r));
  if (static_cast<double>(r) < ratio * static_cast<double>(kMixedBound))
    return static_cast<int>(again % k);
  return k + static_cast<int>(again % n);
}

}  // namespace

std::vector<std::uint64_t> equal_parts(std::uint64_t elements, std::uint64_t most) {
  std::vector<std::uint64_t> parts(elements / most, most);
  if (elements % most > 0) parts.push_back(elements % most);
  return parts;
}

std::uint64_t byteps_partition(std::uint64_t bytes, int local_ranks) {
  const std::uint64_t unit = kPage * local_ranks;
  return (bytes + unit - 1) / unit * unit;
}

std::uint64_t hash_of_key(KeyHash hash, std::uint64_t key) {
  switch (hash) {
    case KeyHash::naive:
      return ((key >> 16) + key % 65536) * 9973;
    case KeyHash::sdbm:
      return sdbm(std::to_string(key));
    case KeyHash::built_in:
      return std::hash<std::string>{}(std::to_string(key));
    case KeyHash::djb2:
    case KeyHash::mixed:
      break;
  }
  return djb2(std::to_string(key));
}

int server_of_key(KeyHash hash, std::uint64_t key, int servers, int beside) {
  if (hash == KeyHash::mixed) return mixed_server(key, servers, beside);
  return static_cast<int>(hash_of_key(hash, key) % servers);
}

std::vector<double> best_split(int servers, int beside) {
  const int n = beside, k = servers - beside;
  if (k == 0 || n == 0) return std::vector<double>(servers, 1.0 / servers);
  std::vector<double> shares(servers, 0);
  const bool own_only = k >= n;
  for (int s = 0; s < servers; ++s)
    shares[s] = s < k      ? (own_only ? 1.0 / k : 2.0 * (n - 1) / denominator(n, k))
                : own_only ? 0
                           : (n - k) / denominator(n, k);
  return shares;
}

double best_time(int servers, int beside, int workers) {
  const int k = servers - beside;
  if (beside == 0) return std::max(1.0, static_cast<double>(workers) / k);
  if (k >= workers) return 1;
  return 2.0 * workers * (workers - 1) / denominator(workers, k);
}

ExactSplit::ExactSplit(std::span<const double> shares, std::uint64_t total)
    : shares_(shares.begin(), shares.end()), given_(shares.size()) {
  double sum = 0;
  std::uint64_t before = 0;
  for (const double share : shares_) {
    sum += share;
    const auto until =
        std::min(total, static_cast<std::uint64_t>(sum * static_cast<double>(total) + 0.5));
    left_.push_back(until - before);
    before = until;
  }
  left_.back() += total - before;
}

std::vector<ExactSplit::Part> ExactSplit::next(std::uint64_t elements) {
  std::vector<Part> parts;
  while (elements > 0) {
    int best = -1;
    double most = 0;
    for (std::size_t b = 0; b < left_.size(); ++b) {
      if (left_[b] == 0) continue;
      const double lacks =
          shares_[b] * static_cast<double>(dealt_ + elements) - static_cast<double>(given_[b]);
      if (best >= 0 && lacks <= most) continue;
      best = static_cast<int>(b);
      most = lacks;
    }
    if (best < 0) throw std::invalid_argument("more elements than were announced");
    const std::uint64_t taken = std::min(elements, left_[best]);
    parts.push_back({best, taken});
    left_[best] -= taken;
    given_[best] += taken;
    dealt_ += taken;
    elements -= taken;
  }
  return parts;
}

std::vector<int> longest_first(std::span<const std::uint64_t> sizes, int bins) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  using Load = std::pair<std::uint64_t, int>;  // of a bin
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int b = 0; b < bins; ++b) loads.emplace(0, b);
  std::vector<int> bin_of(sizes.size());
  for (const std::size_t item : order) {
    const auto [load, bin] = loads.top();
    loads.pop();
    bin_of[item] = bin;
    loads.emplace(load + sizes[item], bin);
  }
  return bin_of;
}

}  // namespace ghostrank
