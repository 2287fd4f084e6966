#include "profiles/capture/gradients.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "profiles/capture/profile_text.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::int32_t kLeastBin = -4000;  // smaller magnitudes count as zeros, in a bin below

using Tensor = CapturedGradients::Tensor;
using Blocks = std::vector<std::uint64_t>;  // by number of ranks on which they are nonzero

void add(const Tensor& more, Tensor& sum) {
  sum.zeros += more.zeros;
  for (const auto& [bin, count] : more.counts)
    (bin < kLeastBin ? sum.zeros : sum.counts[bin]) += count;
}

Tensor all_magnitudes(const std::vector<CapturedRank>& ranks) {
  Tensor sum;
  for (const CapturedRank& rank : ranks)
    for (const Tensor& one : rank.gradients.parameters) add(one, sum);
  if (sum.counts.empty())
    throw Error(
        "the records have no gradients that are finite and not zero; capture with --gradients, of "
        "a run of more steps than its warm-up");
  return sum;
}

// A histogram's rows, each with `tensor` appended. Zeros are written as 2^(least / 4 - 30) or less.
std::string rows_of(const Tensor& sum, std::int32_t least, const std::string& tensor) {
  std::string out;
  const auto row = [&](double magnitude, std::uint64_t count) {
    char text[64];
    std::snprintf(text, sizeof text, "%.9g,%llu", magnitude,
                  static_cast<unsigned long long>(count));
    out += text + tensor + "\n";
  };
  if (sum.zeros > 0) row(std::exp2(least / 4.0 - 30), sum.zeros);
  if (sum.counts.empty()) return out;
  std::int32_t reached = sum.counts.begin()->first;  // magnitudes below 2^(reached / 4) are written
  row(std::exp2(reached / 4.0), 0);
  for (const auto& [bin, count] : sum.counts) {
    if (bin > reached) row(std::exp2(bin / 4.0), 0);
    row(std::exp2((bin + 1) / 4.0), count);
    reached = bin + 1;
  }
  return out;
}

// Blocks of all tensors, by number of ranks. All ranks have the same counts, so one rank's are
// enough. Empty if the hooks recorded none.
Blocks all_blocks(const CapturedRank& rank) {
  Blocks sum;
  for (const Tensor& one : rank.gradients.parameters) {
    sum.resize(std::max(sum.size(), one.blocks.size()));
    for (std::size_t k = 0; k < one.blocks.size(); ++k) sum[k] += one.blocks[k];
  }
  return sum;
}

std::string shares(const Blocks& blocks) {
  const auto sum =
      static_cast<double>(std::accumulate(blocks.begin(), blocks.end(), Blocks::value_type{}));
  std::string out = "[";
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    char text[40];
    std::snprintf(text, sizeof text, "%s%.9g", k == 0 ? "" : ", ",
                  static_cast<double>(blocks[k]) / sum);
    out += text;
  }
  return out + "]\n";
}

// A pattern that only this name matches.
std::string literal(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

bool has_any(const Blocks& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [](std::uint64_t one) { return one > 0; });
}

}  // namespace

std::string gradient_magnitudes(const std::vector<CapturedRank>& ranks) {
  const Tensor sum = all_magnitudes(ranks);
  return "magnitude,count\n" + rows_of(sum, sum.counts.begin()->first, "");
}

std::string tensor_magnitudes(const std::vector<CapturedRank>& ranks,
                              const std::vector<CaptureLayer>& layers) {
  const std::int32_t least = all_magnitudes(ranks).counts.begin()->first;
  std::string out = "magnitude,count,tensor\n";
  for (const CaptureLayer& layer : layers)
    for (std::size_t i = 0; i < layer.captured.size(); ++i) {
      Tensor sum;
      for (const CapturedRank& rank : ranks)
        if (layer.captured[i] < rank.gradients.parameters.size())
          add(rank.gradients.parameters[layer.captured[i]], sum);
      out += rows_of(sum, least, "," + layer.name + "." + std::to_string(i));
    }
  return out;
}

std::string gradient_overlap(const std::vector<CapturedRank>& ranks) {
  const Blocks blocks = all_blocks(ranks.front());
  if (!has_any(blocks))
    throw Error("the records have no blocks of gradients; capture with --gradients");
  return "# Blocks of " + std::to_string(ranks.front().gradients.block) +
         " elements of DDP's buckets.\nschema: ghostrank/overlap/1\nshares: " + shares(blocks);
}

std::string tensor_overlaps(const std::vector<CapturedRank>& ranks,
                            const std::vector<CaptureLayer>& layers) {
  std::string out = gradient_overlap(ranks) + "tensors:\n";
  const auto& parameters = ranks.front().gradients.parameters;
  for (const CaptureLayer& layer : layers)
    for (std::size_t i = 0; i < layer.captured.size(); ++i) {
      const Blocks& blocks = parameters.at(layer.captured[i]).blocks;
      if (has_any(blocks))
        out += "  " + yaml_quoted(literal(layer.name + "." + std::to_string(i))) + ": " +
               shares(blocks);
    }
  return out;
}

GradientFacts gradient_facts(const std::vector<CapturedRank>& ranks) {
  const Tensor sum = all_magnitudes(ranks);
  double elements = 0;
  for (const auto& [bin, count] : sum.counts) elements += static_cast<double>(count);
  GradientFacts facts;
  facts.zeros = static_cast<double>(sum.zeros) / (elements + static_cast<double>(sum.zeros));
  facts.block = ranks.front().gradients.block;
  double blocks = 0, nonzero = 0;
  const Blocks by_ranks = all_blocks(ranks.front());
  for (std::size_t k = 0; k < by_ranks.size(); ++k) {
    blocks += static_cast<double>(by_ranks[k]);
    nonzero += static_cast<double>(by_ranks[k] * k) / static_cast<double>(by_ranks.size() - 1);
  }
  facts.density = blocks > 0 ? nonzero / blocks : 0;
  return facts;
}

}  // namespace ghostrank
