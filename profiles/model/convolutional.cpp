// Convolutional networks for images, described by the numbers in their papers' tables: the blocks
// of a bottleneck ResNet, the convolutions of a VGG.
//
// One layer per convolution (with its batch norm) or fully connected layer. Forward FLOPs per
// sample: convolution 2 k k c_in c_out h_out w_out, fully connected 2 in out; norms and pooling
// count 0. As in torchvision, the 3x3 convolution of a stage's first block has the stride.
#include <array>

#include "profiles/model/model.h"

namespace ghostrank {
namespace {

constexpr std::array kKeys{
    Key{"kind", KeyType::choice, kRequired, "what is described", 0, 0, "convolutional"},
    Key{"name", KeyType::string, "model", "how reports call the model"},
    Key{"architecture", KeyType::choice, kRequired, "family", 0, 0, "resnet vgg"},
    Key{"blocks", KeyType::integers, kAbsent,
        "resnet: bottleneck blocks of each of the four stages", 1, 1000},
    Key{"convolutions", KeyType::integers, kAbsent,
        "vgg: output channels of the 3x3 convolutions in order; 0 is a 2x2 pooling", 0, 65536},
    Key{"classes", KeyType::integer, "1000", "outputs of the last layer", 1, 1e6},
    Key{"image", KeyType::integer, "224", "width and height of the input in pixels", 32, 65536}};

constexpr std::uint64_t kMaxConvolutions = 10'000;

class Network {
 public:
  Network(Model& model, std::uint64_t image) : model_(model), width_(image) {}

  std::uint64_t channels() const { return channels_; }
  std::uint64_t width() const { return width_; }
  void set(std::uint64_t channels, std::uint64_t width) {
    channels_ = channels;
    width_ = width;
  }
  void pool(std::uint64_t factor) { width_ = (width_ + factor - 1) / factor; }

  // `size` x `size` convolution; padding keeps the width, which the stride then divides.
  void convolution(const std::string& name, std::uint64_t out, std::uint64_t size,
                   std::uint64_t stride, bool bias) {
    pool(stride);
    const std::uint64_t weights = out * channels_ * size * size;
    Layer layer{name, {{"weight", weights, out}}, 0, 0, 0};
    if (bias) layer.parameters.push_back({"bias", out});
    layer.forward_flops = 2 * static_cast<double>(weights) * static_cast<double>(width_) *
                          static_cast<double>(width_);
    model_.layers.push_back(std::move(layer));
    channels_ = out;
  }
  void batch_norm(const std::string& name) {
    auto& parameters = model_.layers.back().parameters;
    parameters.push_back({name + ".weight", channels_});
    parameters.push_back({name + ".bias", channels_});
    model_.running_statistics += 2 * channels_;
    ++model_.batch_counters;
  }
  void linear(const std::string& name, std::uint64_t out, std::uint64_t in) {
    model_.layers.push_back({name,
                             {{"weight", out * in, out}, {"bias", out}},
                             2 * static_cast<double>(in) * static_cast<double>(out),
                             0,
                             0});
  }

 private:
  Model& model_;
  std::uint64_t channels_ = 3;
  std::uint64_t width_;
};

// 1x1, 3x3, 1x1 convolutions; the first block of a stage also projects its input.
void bottleneck(Network& net, const std::string& name, std::uint64_t inner, std::uint64_t stride,
                bool project) {
  const std::uint64_t channels = net.channels(), width = net.width();
  net.convolution(name + ".conv1", inner, 1, 1, false);
  net.batch_norm("bn1");
  net.convolution(name + ".conv2", inner, 3, stride, false);
  net.batch_norm("bn2");
  net.convolution(name + ".conv3", 4 * inner, 1, 1, false);
  net.batch_norm("bn3");
  if (!project) return;
  net.set(channels, width);
  net.convolution(name + ".downsample", 4 * inner, 1, stride, false);
  net.batch_norm("bn");
}

void resnet(Network& net, const std::vector<std::int64_t>& blocks, std::uint64_t classes) {
  net.convolution("conv1", 64, 7, 2, false);
  net.batch_norm("bn1");
  net.pool(2);
  std::uint64_t inner = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage, inner *= 2)
    for (std::int64_t b = 0; b < blocks[stage]; ++b)
      bottleneck(net, "layer" + std::to_string(stage + 1) + "." + std::to_string(b), inner,
                 stage > 0 && b == 0 ? 2 : 1, b == 0);
  net.linear("fc", classes, net.channels());
}

void vgg(Network& net, const std::vector<std::int64_t>& convolutions, std::uint64_t classes) {
  std::size_t index = 0;
  for (const std::int64_t channels : convolutions) {
    if (channels == 0) {
      net.pool(2);
      ++index;
      continue;
    }
    net.convolution("features." + std::to_string(index), static_cast<std::uint64_t>(channels), 3, 1,
                    true);
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
  return list;
}

}  // namespace

std::span<const Key> convolutional_keys() { return kKeys; }

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
  } else {
    const auto convolutions = list_of(settings, "convolutions", mark);
    if (convolutions.size() > kMaxConvolutions)
      fail(settings.at("convolutions").mark,
           "more than " + std::to_string(kMaxConvolutions) + " convolutions; list fewer");
    vgg(net, convolutions, classes);
  }
  return model;
}

}  // namespace ghostrank
