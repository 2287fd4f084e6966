#include "profiles/model/model.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/load/locate.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

struct Published {
  const char* model;
  std::size_t tensors;
  std::uint64_t parameters;
};

class ShippedModel : public testing::TestWithParam<Published> {};

TEST_P(ShippedModel, HasThePublishedTensorsAndParameters) {
  const Model model = test::shipped_model(GetParam().model);
  EXPECT_EQ(model.name, GetParam().model);
  EXPECT_EQ(model.tensors(), GetParam().tensors);
  EXPECT_EQ(model.parameters(), GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(
    Totals, ShippedModel,
    testing::Values(
        Published{"resnet50", 161, 25557032}, Published{"vgg16", 32, 138357544},
        Published{"resnet152", 467, 60192808}, Published{"densenet201", 604, 20013928},
        Published{"inception-v4", 449, 42679816}, Published{"vgg19", 38, 143667240},
        // 0.27, 0.46 and 1.7 million in table 6 of He et al. (2016)
        Published{"cifar-resnet20", 59, 269722}, Published{"cifar-resnet32", 95, 464154},
        Published{"cifar-resnet110", 329, 1727962}, Published{"bert-base", 206, 110106428},
        Published{"bert-large", 398, 336226108}, Published{"gpt2", 148, 124439808},
        Published{"gpt2-medium", 292, 354823168}, Published{"gpt2-large", 436, 774030080},
        Published{"gpt2-xl", 580, 1557611200}, Published{"llama2-7b", 291, 6738415616},
        Published{"llama2-13b", 363, 13015864320}, Published{"llama2-70b", 723, 68976648192},
        Published{"llama3-8b", 291, 8030261248}, Published{"llama3-70b", 723, 70553706496},
        Published{"llama3.1-405b", 1137, 405853388800}, Published{"llama3.2-1b", 146, 1235814400},
        Published{"llama3.2-3b", 254, 3212749824}, Published{"qwen2.5-7b", 339, 7615616512},
        Published{"mixtral-8x7b", 995, 46702792704}, Published{"mixtral-8x22b", 1739, 140620634112},
        Published{"deepseek-v3", 45395, 671026419200},
        Published{"deepseek-v2", 29279, 235741434880},
        Published{"deepseek-v2-lite", 5369, 15706484224}),
    [](const auto& param) {
      std::string name = param.param.model;
      for (char& c : name)
        if (c == '-' || c == '.') c = '_';
      return name;
    });

// The tables of papers give sizes only in billions.
TEST(ShippedModels, HaveTheSizesOfTheirPapers) {
  struct Size {
    const char* model;
    double billions, within;
  };
  for (const Size& one :
       {Size{"gpt3-small", 0.125, 0.001}, Size{"gpt3-medium", 0.350, 0.01},
        Size{"gpt3-large", 0.760, 0.001}, Size{"gpt3-xl", 1.3, 0.05}, Size{"gpt3-2.7b", 2.7, 0.1},
        Size{"gpt3-6.7b", 6.7, 0.05}, Size{"gpt3-13b", 13, 0.2}, Size{"gpt3-175b", 175, 0.5},
        Size{"megatron-1.7b", 1.7, 0.05}, Size{"megatron-3.6b", 3.6, 0.05},
        Size{"megatron-7.5b", 7.5, 0.05}, Size{"megatron-18.4b", 18.4, 0.05},
        Size{"megatron-39.1b", 39.1, 0.05}, Size{"megatron-76.1b", 76.1, 0.05},
        Size{"megatron-145.6b", 145.6, 0.05}, Size{"megatron-310.1b", 310.1, 0.05},
        Size{"megatron-529.6b", 529.6, 0.05}, Size{"megatron-1008b", 1008, 0.5}})
    EXPECT_NEAR(static_cast<double>(test::shipped_model(one.model).parameters()) / 1e9,
                one.billions, one.within)
        << one.model;
}

TEST(Model, HasBiasesOfQueriesKeysAndValuesAlone) {
  // The models differ only in biases: hidden 4096, key width 1024, 32 layers.
  const auto parameters = [](const std::string& keys) {
    return test::model_from("{base: llama3-8b" + keys + "}").parameters();
  };
  const std::uint64_t none = parameters(""), qkv = 32 * (4096 + 2 * 1024);
  const std::uint64_t others = 32 * (4096 + 2 * 14336 + 4096);
  EXPECT_EQ(parameters(", qkv_bias: true") - none, qkv);
  EXPECT_EQ(parameters(", bias: true") - none, qkv + others);
  EXPECT_EQ(parameters(", bias: true, qkv_bias: false") - none, others);
}

std::vector<std::uint64_t> tensors_of(const Model& model) {
  std::vector<std::uint64_t> sizes;
  for (const Layer& layer : model.layers)
    for (const ParameterTensor& tensor : layer.parameters) sizes.push_back(tensor.numel);
  return sizes;
}

// The tensors of GRACE's release.
TEST(Model, FiltersCollaborativelyAsGraceDoes) {
  const Model ncf = test::shipped_model("ncf");
  EXPECT_EQ(tensors_of(ncf), (std::vector<std::uint64_t>{26590656, 5134848, 65536, 256, 32768, 128,
                                                         8192, 64, 128, 1}));
  EXPECT_EQ(ncf.parameters(), 31832577u);
  EXPECT_DOUBLE_EQ(ncf.forward_flops(), 2.0 * (65536 + 32768 + 8192 + 128));
  const auto error = [](const std::string& yaml) {
    return test::error_of([&] { test::model_from(yaml); });
  };
  EXPECT_NE(error("{base: ncf, factors: 192}").find("leave nothing for the top MLP"),
            std::string::npos);
  EXPECT_NE(error("{base: ncf, tables: [10]}").find("has two tables, not 1"), std::string::npos);
  EXPECT_NE(error("{base: ncf, bottom: [192]}").find("nothing where interaction is neumf"),
            std::string::npos);
  EXPECT_NE(error("{base: ncf, interaction: dot}").find("dense_features is missing"),
            std::string::npos);
  EXPECT_NE(error("{base: dlrm-criteo, dense_features: 0}").find("write an integer from 1"),
            std::string::npos);
}

TEST(Model, HasTheCellsOfEitherFramework) {
  const Model medium = test::shipped_model("lstm-ptb");
  EXPECT_EQ(tensors_of(medium),
            (std::vector<std::uint64_t>{3380000, 2600, 3380000, 2600, 6500000, 10000}));
  EXPECT_EQ(medium.parameters(), 13275200u);
  const Model large = test::shipped_model("lstm-ptb-large");
  EXPECT_EQ(tensors_of(large),
            (std::vector<std::uint64_t>{15000000, 9000000, 9000000, 6000, 6000, 9000000, 9000000,
                                        6000, 6000, 15000000, 10000}));
  EXPECT_EQ(large.parameters(), 66034000u);
  // Each word passes every weight but the embedding's.
  EXPECT_DOUBLE_EQ(large.forward_flops(), 2.0 * 35 * (4 * 9e6 + 15e6));
}

TEST(Model, IsADescriptionThatOtherSizesFollowFrom) {
  EXPECT_EQ(test::model_from("{base: resnet50, blocks: [3, 4, 23, 3]}").parameters(), 44549160u);
  EXPECT_EQ(test::model_from("{base: resnet50, blocks: [3, 8, 36, 3]}").tensors(), 467u);
  EXPECT_EQ(test::model_from("{base: resnet50, classes: 1001}").parameters(), 25559081u);
  const Model encoder = test::model_from("{base: bert-large, pretraining_heads: false}");
  EXPECT_EQ(encoder.tensors(), 391u);
  EXPECT_EQ(encoder.parameters(), 335141888u);
}

// A BERT whose heads are wider than hidden / heads, or whose decoder has a table of its own.
TEST(Model, OfABertHasItsHeadsWidthAndItsDecoder) {
  const auto parameters = [](const std::string& keys) {
    return test::model_from("{base: bert-large" + keys + "}").parameters();
  };
  const std::uint64_t own = parameters("");  // hidden 1024, 16 heads, 24 layers
  EXPECT_EQ(parameters(", tied_embeddings: false") - own, 30522u * 1024);
  EXPECT_EQ(parameters(", head_width: 64"), own);
  // Queries, keys and values have biases as wide as all heads, the output reads that width.
  EXPECT_EQ(parameters(", head_width: 128") - own, 24u * (4 * 1024 * 1024 + 3 * 1024));
}

TEST(Model, RefusesKeysWithoutEffect) {
  struct Idle {
    std::string model;
    const char* error;
  };
  const std::string llama =
      "{kind: transformer, layers: 1, hidden: 64, heads: 4, sequence: 8, "
      "vocabulary: 9, norm: rmsnorm, ";
  for (const Idle& one : {
           Idle{"{base: llama3-8b, experts: {top_k: 2}}",
                "experts.top_k means nothing where experts.count is 0; leave it out, or change "
                "experts.count"},
           Idle{llama + "experts: {count: 0, ffn: 8}}", "experts.ffn means nothing where"},
           Idle{llama + "latent: {q_lora: 24}}",
                "latent.q_lora means nothing where latent.kv_lora is 0"},
           Idle{llama + "type_vocabulary: 3}",
                "type_vocabulary means nothing where architecture is not given; leave it out, or "
                "use architecture: bert"},
           Idle{"{base: llama3-8b, positions: 8192}",
                "positions means nothing where position_embeddings is rope"},
           Idle{"{base: bert-base, pretraining_heads: false, tied_embeddings: false}",
                "tied_embeddings means nothing where pretraining_heads is false"},
           Idle{"{base: resnet50, growth: 12}",
                "growth means nothing where architecture is resnet"},
           Idle{"{base: resnet50, convolutions: [64]}", "convolutions means nothing where"},
           Idle{"{base: vgg16, blocks: [3]}", "blocks means nothing where architecture is vgg"},
           Idle{"{base: dlrm-criteo, cross_rank: 64}",
                "cross_rank means nothing where interaction is dot"},
           Idle{"{base: dlrm-criteo, factors: 8}", "factors means nothing where"},
       })
    EXPECT_NE(test::error_of([&] { test::model_from(one.model); }).find(one.error),
              std::string::npos)
        << one.model << ": " << test::error_of([&] { test::model_from(one.model); });
  EXPECT_EQ(test::error_of([&] { test::model_from(llama + "experts: {top_k: 1}}"); }), "")
      << "a key at its default may stand anywhere";
}

TEST(Model, LeavesOutWhatItsBaseSaysOfOthers) {
  EXPECT_EQ(test::model_from("{base: mixtral-8x7b, experts: {count: 0}}").parameters(),
            test::model_from("{base: llama3-8b, vocabulary: 32000}").parameters());
  EXPECT_EQ(test::model_from("{base: bert-base, architecture: gpt2, sequence: 1024, "
                             "vocabulary: 50257}")
                .parameters(),
            124439808u);
  EXPECT_EQ(test::model_from("{base: densenet201, architecture: resnet, blocks: [3, 4, 6, 3]}")
                .parameters(),
            25557032u);
}

TEST(Model, HasNoMoreTensorsThanCanBePlanned) {
  const auto error = [](const std::string& yaml) {
    return test::error_of([&] { test::model_from(yaml); });
  };
  EXPECT_NE(error("{base: mixtral-8x7b, layers: 10000, experts: {count: 100000}}")
                .find("more than 1000000 parameter tensors; lower layers or experts.count"),
            std::string::npos);
  std::string blocks = "1000";
  for (int i = 0; i < 10; ++i) blocks += ", 1000";
  EXPECT_NE(error("{base: densenet201, blocks: [" + blocks + "]}")
                .find("more than 10000 blocks; list fewer"),
            std::string::npos);
}

TEST(Model, FollowsTheKeysOfAGatedGroupedQueryTransformer) {
  const Model llama3_8b = test::model_from(
      "{kind: transformer, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, "
      "gated_ffn: true, sequence: 8192, vocabulary: 128256, tied_embeddings: false, "
      "position_embeddings: rope, norm: rmsnorm, bias: false}");
  EXPECT_EQ(llama3_8b.tensors(), 291u);
  EXPECT_EQ(llama3_8b.parameters(), 8030261248u);
  EXPECT_EQ(llama3_8b.architecture, "llama");
  const Model llama2_70b = test::model_from(
      "{kind: transformer, layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, "
      "gated_ffn: true, sequence: 4096, vocabulary: 32000, tied_embeddings: false, "
      "position_embeddings: rope, norm: rmsnorm, bias: false}");
  EXPECT_EQ(llama2_70b.tensors(), 723u);
  EXPECT_EQ(llama2_70b.parameters(), 68976648192u);
}

TEST(Model, RegistersTensorsInTheOrderOfTheReferenceImplementation) {
  const Model gpt2 = test::shipped_model("gpt2");
  ASSERT_EQ(gpt2.layers.size(), 14u);  // embeddings, 12 blocks, head
  EXPECT_EQ(gpt2.layers[0].parameters[0].numel, 50257u * 768);
  EXPECT_EQ(gpt2.layers[0].parameters[1].numel, 1024u * 768);
  const std::vector<std::uint64_t> block{768, 768, 768 * 2304, 2304, 768 * 768,  768,
                                         768, 768, 768 * 3072, 3072, 3072 * 768, 768};
  ASSERT_EQ(gpt2.layers[5].parameters.size(), block.size());
  for (std::size_t i = 0; i < block.size(); ++i)
    EXPECT_EQ(gpt2.layers[5].parameters[i].numel, block[i]) << i;

  const Model resnet = test::shipped_model("resnet50");
  ASSERT_EQ(resnet.layers.size(), 54u);  // 53 convolutions, fc
  EXPECT_EQ(resnet.layers[4].name, "layer1.0.downsample");
  EXPECT_EQ(resnet.layers[4].parameters[0].numel, 64u * 256);
  EXPECT_EQ(resnet.layers.back().parameters[0].numel, 2048u * 1000);
}

// FLOPs: 24 s h h + 4 s s h per layer and 2 s h V for the logits.
TEST(Flops, OfATransformerFollowTheTextbook) {
  const double s = 1024, h = 1600, v = 50257, layers = 48;
  EXPECT_DOUBLE_EQ(test::shipped_model("gpt2-xl").forward_flops(),
                   layers * (24 * s * h * h + 4 * s * s * h) + 2 * s * h * v);
}

// torchvision's documentation gives 4.09, 15.47 and 19.63 billion multiply-adds.
TEST(Flops, OfConvolutionalNetworksAreThePublishedOnes) {
  EXPECT_NEAR(test::shipped_model("resnet50").forward_flops() / 2e9, 4.09, 0.01);
  EXPECT_NEAR(test::shipped_model("vgg16").forward_flops() / 2e9, 15.47, 0.01);
  EXPECT_NEAR(test::shipped_model("vgg19").forward_flops() / 2e9, 19.63, 0.01);
}

// Measured with torch.autograd.graph.saved_tensors_hooks (PyTorch 1.13, models of torchvision 0.14
// and of the papers): every storage that a forward of two samples saves counts once, without
// parameters and the batch norms' means and deviations, which do not grow with the samples.
// Layer::kept omits ReLUs and dropout masks between a VGG's linear maps: 16,384 elements, 0.1 %.
TEST(KeptForTheBackward, OfConvolutionalNetworksIsWhatPyTorchSaves) {
  struct Saved {
    const char* model;
    double elements, bytes;
    double left_out = 0;
  };
  for (const Saved& saved :
       {Saved{"resnet50", 21'075'968, 1'605'632}, Saved{"resnet152", 43'956'224, 1'605'632},
        Saved{"vgg16", 15'278'080, 12'242'944, 16'384},
        Saved{"vgg19", 16'582'656, 12'242'944, 16'384}, Saved{"densenet201", 50'340'992, 1'605'632},
        Saved{"inception-v4", 41'629'387, 6'022'144}, Saved{"cifar-resnet20", 379'968, 0},
        Saved{"cifar-resnet32", 609'344, 0}, Saved{"cifar-resnet110", 2'100'288, 0}}) {
    double elements = 0, bytes = 0;
    for (const Layer& layer : test::shipped_model(saved.model).layers) {
      elements += layer.kept;
      bytes += layer.kept_bytes;
    }
    EXPECT_EQ(elements, saved.elements - saved.left_out) << saved.model;
    EXPECT_EQ(bytes, saved.bytes) << saved.model;
  }
}

TEST(MeasuredLayers, KeepTheirTimesAndTensors) {
  const Model model = test::model_from(
      "kind: layers\nname: mine\ndtype: bf16\nlayers:\n"
      "  - {name: conv0, parameters: [1728, 64], forward_us: 6000, backward_us: 12000.5}\n"
      "  - {parameters: []}\n"
      "optimizer_us: 2000\n");
  EXPECT_TRUE(model.measured);
  EXPECT_EQ(model.name, "mine");
  EXPECT_EQ(model.dtype, DataType::bfloat16);
  EXPECT_EQ(model.tensors(), 2u);
  EXPECT_EQ(model.parameters(), 1792u);
  EXPECT_EQ(model.layers[0].forward, 6000 * kPicosPerMicro);
  EXPECT_EQ(model.layers[0].backward, 12000 * kPicosPerMicro + kPicosPerMicro / 2);
  EXPECT_EQ(model.layers[1].name, "layer1");
  EXPECT_EQ(model.optimizer, 2 * kPicosPerMilli);
}

TEST(LayerCsv, IsReadAsMeasuredLayers) {
  const test::Folder folder;
  const std::string path = folder.write("net.csv",
                                        "layer_index, numel, forward_pass_ns, backward_pass_ns\n"
                                        "0,1000,5000,7001\n1, 24 ,1,0\r\n\n");
  const Model model = test::model_from(path);
  EXPECT_EQ(model.name, "net");
  EXPECT_EQ(model.kind, "layers");
  ASSERT_EQ(model.layers.size(), 2u);
  EXPECT_EQ(model.layers[0].parameters[0].numel, 1000u);
  EXPECT_EQ(model.layers[0].backward, 7001 * kPicosPerNano);
  EXPECT_EQ(model.layers[1].forward, 1 * kPicosPerNano);
  EXPECT_EQ(model.parameters(), 1024u);
}

TEST(LayerCsv, IsReadByTheNamesOfItsColumns) {
  const test::Folder folder;
  const Model model = test::model_from(
      folder.write("net.csv",
                   "\xef\xbb\xbf"
                   "backward_pass_ns,numel,layer_index,forward_pass_ns\n7,1000,3,5\n"));
  ASSERT_EQ(model.layers.size(), 1u);
  EXPECT_EQ(model.layers[0].name, "layer3");
  EXPECT_EQ(model.parameters(), 1000u);
  EXPECT_EQ(model.layers[0].forward, 5 * kPicosPerNano);
  EXPECT_EQ(model.layers[0].backward, 7 * kPicosPerNano);
  const std::string other = folder.write("other.csv", "layer_index,numel,forward_ns\n0,1,2\n");
  EXPECT_EQ(test::error_of([&] { test::model_from(other); }),
            other +
                ":1:1: there is no column forward_pass_ns; write "
                "layer_index,numel,forward_pass_ns,backward_pass_ns");
}

TEST(LayerCsv, NamesTheRowThatIsWrong) {
  const test::Folder folder;
  const std::string short_row = folder.write("short.csv", "0,1000,5000\n");
  EXPECT_EQ(test::error_of([&] { test::model_from(short_row); }),
            short_row +
                ":1:1: a row has 3 fields; write layer_index,numel,forward_pass_ns,"
                "backward_pass_ns");
  const std::string words = folder.write("words.csv", "0,1,2,3\n1,1,two,3\n");
  EXPECT_EQ(test::error_of([&] { test::model_from(words); }),
            words + ":2:1: forward_pass_ns is 'two'; write nanoseconds as an integer");
  const std::string empty = folder.write("empty.csv", "");
  EXPECT_EQ(test::error_of([&] { test::model_from(empty); }),
            empty + ":1:1: layers is a list; list at least one layer");
}

TEST(LayerCsv, ReadsTheExampleOfSwitchMl) {
  const std::string traces = test::data_folder() + "/traces";
  if (!std::filesystem::is_directory(traces)) GTEST_SKIP() << "there is no " << traces;
  const Model model = test::model_from(traces + "/switchml/dnn_benchmark_example.csv");
  ASSERT_EQ(model.layers.size(), 10u);
  EXPECT_EQ(model.layers[9].parameters[0].numel, 16777217u);
  EXPECT_EQ(model.layers[9].backward, 160 * kPicosPerMicro);
}

TEST(Model, NamesWhatIsMissingOrUnfit) {
  const auto error = [](const std::string& yaml) {
    return test::error_of([&] { test::model_from(yaml); });
  };
  EXPECT_EQ(
      error("{layers: 3}"),
      "model:1:1: the model has no kind; add kind: transformer, convolutional, recommendation, "
      "recurrent or layers");
  EXPECT_EQ(error("{kind: mlp}"),
            "model:1:8: kind is 'mlp'; allowed: transformer, convolutional, recommendation, "
            "recurrent, layers");
  EXPECT_EQ(error("{base: gpt2, heads: 7}"),
            "model:1:21: heads does not divide hidden; choose a divisor of 768 or give head_width");
  EXPECT_EQ(error("{base: gpt2, experts: {count: 8}}"),
            "model:1:31: architecture gpt2 has no experts; use architecture: llama");
  EXPECT_NE(
      error("{base: deepseek-v2-lite, qkv_bias: true}").find("latent attention have no biases"),
      std::string::npos);
  EXPECT_EQ(error("{base: bert-base, sequence: 512, positions: 500}"),
            "model:1:45: positions has fewer rows than the sequence tokens; use at least 512");
  EXPECT_EQ(error("{base: mixtral-8x7b, experts: {top_k: 9}}"),
            "model:1:39: experts.top_k is more than experts.count; use at most 8");
  EXPECT_EQ(error("{base: resnet50, blocks: [3, 4]}"),
            "model:1:26: blocks has 2 stages; a bottleneck ResNet has 4");
  EXPECT_EQ(error("{kind: convolutional, architecture: vgg}"),
            "model:1:1: the model needs convolutions; list them");
  EXPECT_EQ(error("{base: vgg16, convolutions: [0, 64, 0]}"),
            "model:1:29: convolutions begins with a pooling; begin with the channels of a "
            "convolution");
  EXPECT_EQ(error("{kind: layers, layers: [{parameters: [0]}]}"),
            "model:1:39: parameters is '0'; write a list of integers from 1 to "
            "1000000000000");
  EXPECT_EQ(error("{kind: layers, layers: [{name: relu}]}"),
            "model:1:1: the model has no parameters; there is nothing to reduce");
  EXPECT_EQ(error("{kind: transformer, hidden: 64, heads: 4, sequence: 8, vocabulary: 9}"),
            "model:1:1: model has no layers; add it: transformer layers");
  EXPECT_EQ(error("deepseek-v2-"),
            "model:1:1: there is no model called 'deepseek-v2-'; did you mean deepseek-v2-lite?");
  EXPECT_EQ(error("deepseek"),
            "model:1:1: there is no model called 'deepseek'; did you mean deepseek-v2 or "
            "deepseek-v2-lite or deepseek-v3?");
  EXPECT_EQ(error("gpt2-xxl"),
            "model:1:1: there is no model called 'gpt2-xxl'; did you mean gpt2-xl?");
}

TEST(Profiles, ThatAreBasedOnThemselvesAreRefused) {
  const test::Folder folder;
  const std::string path = folder.write("models/a.yaml", "base: a\n");
  EXPECT_EQ(test::error_of([&] { test::model_from(path); }),
            path + ":1:1: profiles are based on each other more than 8 deep; break the circle");
}

}  // namespace
}  // namespace ghostrank
