// Inception-v4 as a table: the convolutions of each kind of block, branch by branch, as Szegedy et
// al. (2017) give them in the figures of their paper. Every convolution has a batch norm and a
// ReLU. A 3x3 pooling of stride 2 leaves the same width as the block's convolution of stride 2.
#include <array>
#include <span>

#include "profiles/model/convolutional.h"

namespace ghostrank {
namespace {

enum class From : std::uint8_t {
  last,   // the convolution before it in the table
  block,  // the input of the block: a branch begins
  pair,   // the input of the convolution before it: 1x3 and 3x1 beside each other
};
struct Row {
  const char* name;
  From from;
  std::uint64_t out;
  ConvolutionShape shape;
};
// `maxima`: one more branch is a max pooling; `means`: the last branch begins with an average
// pooling.
enum class Pooling : std::uint8_t { none, maxima, means };
// A block's output has `channels` channels and the width of the last convolution; it is a copy of
// the branches' tensors.
struct Stage {
  std::span<const Row> rows;
  std::uint64_t channels;
  Pooling pooling = Pooling::none;
};

constexpr ConvolutionShape k1{1, 1}, k3{3, 3}, k1x7{1, 7}, k7x1{7, 1}, k1x3{1, 3}, k3x1{3, 1},
    k3Valid{3, 3, 1, true}, k3Half{3, 3, 2, true};

constexpr std::array<Row, 3> kStem{
    {{"0", From::last, 32, k3Half}, {"1", From::last, 32, k3Valid}, {"2", From::last, 64, k3}}};
constexpr std::array<Row, 1> kMixed3{{{"conv", From::block, 96, k3Half}}};
constexpr std::array<Row, 6> kMixed4{{{"0.0", From::block, 64, k1},
                                      {"0.1", From::last, 96, k3Valid},
                                      {"1.0", From::block, 64, k1},
                                      {"1.1", From::last, 64, k1x7},
                                      {"1.2", From::last, 64, k7x1},
                                      {"1.3", From::last, 96, k3Valid}}};
constexpr std::array<Row, 1> kMixed5{{{"conv", From::block, 192, k3Half}}};
constexpr std::array<Row, 7> kInceptionA{{{"0", From::block, 96, k1},
                                          {"1.0", From::block, 64, k1},
                                          {"1.1", From::last, 96, k3},
                                          {"2.0", From::block, 64, k1},
                                          {"2.1", From::last, 96, k3},
                                          {"2.2", From::last, 96, k3},
                                          {"3.1", From::block, 96, k1}}};
constexpr std::array<Row, 4> kReductionA{{{"0", From::block, 384, k3Half},
                                          {"1.0", From::block, 192, k1},
                                          {"1.1", From::last, 224, k3},
                                          {"1.2", From::last, 256, k3Half}}};
constexpr std::array<Row, 10> kInceptionB{{{"0", From::block, 384, k1},
                                           {"1.0", From::block, 192, k1},
                                           {"1.1", From::last, 224, k1x7},
                                           {"1.2", From::last, 256, k7x1},
                                           {"2.0", From::block, 192, k1},
                                           {"2.1", From::last, 192, k7x1},
                                           {"2.2", From::last, 224, k1x7},
                                           {"2.3", From::last, 224, k7x1},
                                           {"2.4", From::last, 256, k1x7},
                                           {"3.1", From::block, 128, k1}}};
constexpr std::array<Row, 6> kReductionB{{{"0.0", From::block, 192, k1},
                                          {"0.1", From::last, 192, k3Half},
                                          {"1.0", From::block, 256, k1},
                                          {"1.1", From::last, 256, k1x7},
                                          {"1.2", From::last, 320, k7x1},
                                          {"1.3", From::last, 320, k3Half}}};
constexpr std::array<Row, 10> kInceptionC{{{"0", From::block, 256, k1},
                                           {"1_0", From::block, 384, k1},
                                           {"1_1a", From::last, 256, k1x3},
                                           {"1_1b", From::pair, 256, k3x1},
                                           {"2_0", From::block, 384, k1},
                                           {"2_1", From::last, 448, k3x1},
                                           {"2_2", From::last, 512, k1x3},
                                           {"2_3a", From::last, 256, k1x3},
                                           {"2_3b", From::pair, 256, k3x1},
                                           {"3.1", From::block, 256, k1}}};

struct Size {
  std::uint64_t channels, width;
};

void convolutions(Network& net, const std::string& name, std::span<const Row> rows) {
  const Size input{net.channels(), net.width()};
  Size before = input;
  for (const Row& row : rows) {
    const Size at = row.from == From::block  ? input
                    : row.from == From::pair ? before
                                             : Size{net.channels(), net.width()};
    net.set(at.channels, at.width);
    net.convolution(name + "." + row.name, row.out, row.shape, false);
    net.batch_norm("bn");
    net.relu();
    before = at;
  }
}

void add(Network& net, const std::string& name, const Stage& block) {
  const std::uint64_t channels = net.channels();
  if (block.pooling == Pooling::means) net.keep();  // the pooling's output, as large as its input
  convolutions(net, name, block.rows);
  net.set(block.channels, net.width());
  net.keep();
  if (block.pooling == Pooling::maxima) net.keep_maxima(channels);
}

}  // namespace

void inception_v4(Network& net, std::uint64_t classes) {
  convolutions(net, "features", kStem);
  std::size_t index = kStem.size();  // of the module in `features`
  const auto blocks = [&](int count, const Stage& block) {
    for (; count > 0; --count) add(net, "features." + std::to_string(index++), block);
  };
  blocks(1, {kMixed3, 64 + 96, Pooling::maxima});
  blocks(1, {kMixed4, 96 + 96});
  blocks(1, {kMixed5, 192 + 192, Pooling::maxima});
  blocks(4, {kInceptionA, 4 * 96, Pooling::means});
  blocks(1, {kReductionA, 384 + 384 + 256, Pooling::maxima});
  blocks(7, {kInceptionB, 384 + 256 + 256 + 128, Pooling::means});
  blocks(1, {kReductionB, 1024 + 192 + 320, Pooling::maxima});
  blocks(3, {kInceptionC, 256 + 512 + 512 + 256, Pooling::means});
  net.linear("last_linear", classes, net.channels());
}

}  // namespace ghostrank
