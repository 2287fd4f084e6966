// Convolutional networks for images, described by the numbers in their papers' tables: the blocks
// of a bottleneck ResNet, of a ResNet for CIFAR or of a DenseNet, the convolutions of a VGG;
// Inception-v4 is a table (inception.cpp). As in torchvision, the 3x3 convolution of a ResNet
// stage's first block has the stride.
#include "profiles/model/convolutional.h"

#include <array>
#include <numeric>

#include "profiles/model/model.h"

namespace ghostrank {
namespace {

constexpr std::array kConvolutionalKeys{
    Key{"kind", KeyType::choice, kRequired, "what is described", 0, 0, "convolutional"},
    Key{"name", KeyType::string, "model", "how reports call the model"},
    Key{"architecture", KeyType::choice, kRequired, "family", 0, 0,
        "resnet cifar_resnet vgg densenet inception_v4"},
    Key{"blocks", KeyType::integers, kAbsent,
        "resnet: bottleneck blocks of each of the four stages; cifar_resnet: blocks of two "
        "convolutions of each of the three stages; densenet: layers of each of its dense blocks",
        1, 1000}
        .where("architecture", "resnet cifar_resnet densenet"),
    Key{"growth", KeyType::integer, "32", "channels that a layer adds", 1, 4096}.where(
        "architecture", "densenet"),
    Key{"convolutions", KeyType::integers, kAbsent,
        "output channels of the 3x3 convolutions in order; 0 is a 2x2 pooling", 0, 65536}
        .where("architecture", "vgg"),
    Key{"classes", KeyType::integer, "1000", "outputs of the last layer", 1, 1e6},
    Key{"image", KeyType::integer, "224", "width and height of the input in pixels", 32, 65536}};

constexpr std::uint64_t kMaxConvolutions = 10'000;
constexpr std::int64_t kMaxBlocks = 10'000;

// 1x1, 3x3, 1x1 convolutions; the first block of a stage also projects its input.
void bottleneck(Network& net, const std::string& name, std::uint64_t inner, std::uint64_t stride,
                bool project) {
  const std::uint64_t channels = net.channels(), width = net.width();
  net.convolution(name + ".conv1", inner, 1, 1, false);
  net.batch_norm("bn1");
  net.relu();
  net.convolution(name + ".conv2", inner, 3, stride, false);
  net.batch_norm("bn2");
  net.relu();
  net.convolution(name + ".conv3", 4 * inner, 1, 1, false);
  net.batch_norm("bn3");
  if (project) {
    net.set(channels, width);
    net.convolution(name + ".downsample", 4 * inner, 1, stride, false);
    net.batch_norm("bn");
  }
  net.relu();
}

void resnet(Network& net, const std::vector<std::int64_t>& blocks, std::uint64_t classes) {
  net.convolution("conv1", 64, 7, 2, false);
  net.batch_norm("bn1");
  net.relu();
  net.max_pool(2);
  net.keep();  // a convolution's input
  std::uint64_t inner = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage, inner *= 2)
    for (std::int64_t b = 0; b < blocks[stage]; ++b)
      bottleneck(net, "layer" + std::to_string(stage + 1) + "." + std::to_string(b), inner,
                 stage > 0 && b == 0 ? 2 : 1, b == 0);
  net.linear("fc", classes, net.channels());
}

// He et al. (2016), section 4.2: 16, 32 and 64 channels. Where they grow, the shortcut leaves out
// every other pixel and adds channels of zeros (option A), so it has no parameters.
void cifar_resnet(Network& net, const std::vector<std::int64_t>& blocks, std::uint64_t classes) {
  const auto normed = [&](const std::string& name, std::uint64_t channels, std::uint64_t stride,
                          const char* norm) {
    net.convolution(name, channels, 3, stride, false);
    net.batch_norm(norm);
    net.relu();  // of a block's second convolution: of the sum with the shortcut
  };
  normed("conv1", 16, 1, "bn1");
  for (std::size_t stage = 0; stage < blocks.size(); ++stage)
    for (std::int64_t b = 0; b < blocks[stage]; ++b) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(b);
      normed(name + ".conv1", 16u << stage, stage > 0 && b == 0 ? 2 : 1, "bn1");
      normed(name + ".conv2", 16u << stage, 1, "bn2");
    }
  net.linear("linear", classes, net.channels());
}

// A layer norms all channels so far, then its 1x1 and 3x3 convolutions add `growth` to them; blocks
// are joined by a norm, a 1x1 convolution to half the channels, and a pooling.
void densenet(Network& net, const std::vector<std::int64_t>& blocks, std::uint64_t growth,
              std::uint64_t classes) {
  net.convolution("conv0", 2 * growth, 7, 2, false);
  net.batch_norm("norm0");
  net.relu();
  net.max_pool(2);
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    const std::string name = "denseblock" + std::to_string(block + 1) + ".denselayer";
    for (std::int64_t i = 1; i <= blocks[block]; ++i) {
      const std::uint64_t channels = net.channels();
      net.normed_convolution(name + std::to_string(i) + ".1", 4 * growth, 1);
      net.normed_convolution(name + std::to_string(i) + ".2", growth, 3);
      net.set(channels + growth, net.width());
    }
    if (block + 1 == blocks.size()) break;
    net.normed_convolution("transition" + std::to_string(block + 1), net.channels() / 2, 1);
    net.keep();  // the pooling's input
    net.pool(2);
  }
  net.batch_norm("norm5");
  net.relu();
  net.linear("classifier", classes, net.channels());
}

void vgg(Network& net, const std::vector<std::int64_t>& convolutions, std::uint64_t classes) {
  std::size_t index = 0;
  for (const std::int64_t channels : convolutions) {
    if (channels == 0) {
      net.max_pool(2);
      net.keep();  // a convolution's input
      ++index;
      continue;
    }
    net.convolution("features." + std::to_string(index), static_cast<std::uint64_t>(channels), 3, 1,
                    true);
    net.relu();
    index += 2;  // the activation is a module too
  }
  // VGG pools to 7x7 for every image size.
  net.linear("classifier.0", 4096, net.channels() * 7 * 7);
  net.linear("classifier.3", 4096, 4096);
  net.linear("classifier.6", classes, 4096);
}

std::vector<std::int64_t> list_of(const Settings& settings, std::string_view key,
                                  const Mark& mark) {
  const std::vector<std::int64_t> list = settings.integers(key);
  if (list.empty()) fail(mark, "the model needs " + std::string(key) + "; list them");
  if (key == "blocks" && std::accumulate(list.begin(), list.end(), std::int64_t{0}) > kMaxBlocks)
    fail(settings.at(key).mark, "more than " + std::to_string(kMaxBlocks) + " blocks; list fewer");
  return list;
}

}  // namespace

std::span<const Key> convolutional_keys() { return kConvolutionalKeys; }

Model make_convolutional(const Settings& settings, const Mark& mark) {
  Model model;
  model.name = settings.text("name");
  model.architecture = settings.text("architecture");
  const auto classes = static_cast<std::uint64_t>(settings.integer("classes"));
  Network net(model, static_cast<std::uint64_t>(settings.integer("image")));
  if (model.architecture == "resnet") {
    const auto blocks = list_of(settings, "blocks", mark);
    if (blocks.size() != 4)
      fail(settings.at("blocks").mark,
           "blocks has " + std::to_string(blocks.size()) + " stages; a bottleneck ResNet has 4");
    resnet(net, blocks, classes);
  } else if (model.architecture == "cifar_resnet") {
    const auto blocks = list_of(settings, "blocks", mark);
    if (blocks.size() != 3)
      fail(settings.at("blocks").mark,
           "blocks has " + std::to_string(blocks.size()) + " stages; a ResNet for CIFAR has 3");
    cifar_resnet(net, blocks, classes);
  } else if (model.architecture == "densenet") {
    densenet(net, list_of(settings, "blocks", mark),
             static_cast<std::uint64_t>(settings.integer("growth")), classes);
  } else if (model.architecture == "inception_v4") {
    inception_v4(net, classes);
  } else {
    const auto convolutions = list_of(settings, "convolutions", mark);
    if (convolutions.size() > kMaxConvolutions)
      fail(settings.at("convolutions").mark,
           "more than " + std::to_string(kMaxConvolutions) + " convolutions; list fewer");
    if (convolutions.front() == 0)
      fail(settings.at("convolutions").mark,
           "convolutions begins with a pooling; begin with the channels of a convolution");
    vgg(net, convolutions, classes);
  }
  return model;
}

}  // namespace ghostrank
