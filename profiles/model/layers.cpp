// Models that are lists of layers: captured from a real run, or written by hand.
//
// The CSV form is that of p4app-switchML's dnn_benchmark, a header line and one row per layer:
// layer_index, numel, forward_pass_ns, backward_pass_ns.
#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "profiles/input/quantity.h"
#include "profiles/model/model.h"

namespace ghostrank {
namespace {

constexpr double kMaxMicros = 1e9;  // a layer of more than 1000 s means wrong units
constexpr double kMaxNumel = 1e12;
constexpr std::size_t kMaxListed = 100'000;

constexpr std::array kListKeys{
    Key{"kind", KeyType::choice, kRequired, "what is described", 0, 0, "layers"},
    Key{"name", KeyType::string, "model", "how reports call the model"},
    Key{"dtype", KeyType::choice, "float32", "type of parameters and gradients", 0, 0,
        "float32 fp32 bfloat16 bf16 float16 fp16 int32"},
    Key{"layers", KeyType::any, kRequired,
        "list of {name, parameters: [elements, ...], forward_us, backward_us} in forward order"},
    Key{"optimizer_us", KeyType::number, "0", "measured time of the optimizer step", 0, kMaxMicros},
    Key{"before_us", KeyType::number, "0", "from a step's begin to its forward, as for its data", 0,
        kMaxMicros},
    Key{"loss_us", KeyType::number, "0", "from the forward to the backward", 0, kMaxMicros},
    Key{"after_us", KeyType::number, "0", "from the last all-reduce to the optimizer", 0,
        kMaxMicros},
    Key{"float_buffers", KeyType::integer, "0",
        "elements of fp32 buffers that DDP broadcasts before a forward", 0, kMaxNumel},
    Key{"integer_buffers", KeyType::integer, "0", "elements of its int64 buffers", 0, kMaxNumel},
    Key{"buckets", KeyType::integers, "[]",
        "tensors in each of DDP's buckets, in the order in which gradients get ready; played where "
        "the job gives no size of buckets",
        1, kMaxNumel},
    Key{"find_unused_parameters", KeyType::boolean, "false",
        "DDP looks for parameters without a gradient: it never forms its buckets anew, and behind "
        "the last one it sums which parameters were used"},
    Key{"recorded_ns", KeyType::any, kAbsent,
        "a list for each captured rank, in it a list for each step: before, forward by layer, "
        "loss, "
        "backward by layer, after, optimizer"},
    Key{"capture", KeyType::any, kAbsent, "what `profile capture` found beside the layers"}};

constexpr std::array kLayerKeys{
    Key{"name", KeyType::string, kAbsent, "how the layer is called"},
    Key{"parameters", KeyType::integers, "[]", "elements of each tensor, in registration order", 1,
        kMaxNumel},
    Key{"forward_us", KeyType::number, "0", "measured forward time", 0, kMaxMicros},
    Key{"backward_us", KeyType::number, "0", "measured backward time", 0, kMaxMicros}};

constexpr double kMaxNanos = 1e15;
constexpr std::array kCaptureKeys{
    Key{"ranks", KeyType::integer, kRequired, "processes of the captured run", 1,
        kMostCaptureRanks},
    Key{"backend", KeyType::string, "gloo", "its process group"},
    Key{"torch", KeyType::string, "", "its version of PyTorch"},
    Key{"bucket_cap_mb", KeyType::number, "25", "DDP's bucket_cap_mb", 0, 1e6},
    Key{"nic_rate", KeyType::rate, "0", "at which its all-reduces moved their bytes; 0: unlimited",
        0, 1e15},
    Key{"nic_latency_us", KeyType::number, "0", "one way, between two ranks", 0, 1e6},
    Key{"step_ns", KeyType::integers, "[]", "steps that were recorded", 0, kMaxNanos},
    Key{"held_out_ns", KeyType::integers, "[]", "steps of the same run that were not", 0,
        kMaxNanos},
    Key{"bucket_ns", KeyType::integers, "[]",
        "by bucket, from its last launch to its end; a tenth of them were quicker", 0, kMaxNanos}};

YamlValue scalar(std::string key, std::string text, const Mark& mark) {
  YamlValue value;
  value.kind = YamlValue::Kind::scalar;
  value.text = std::move(text);
  value.key = std::move(key);
  value.mark = value.key_mark = mark;
  return value;
}

YamlValue collection(YamlValue::Kind kind, std::string key, const Mark& mark) {
  YamlValue value;
  value.kind = kind;
  value.key = std::move(key);
  value.mark = value.key_mark = mark;
  return value;
}

// `field` without blanks around it.
std::string trimmed(const std::string& field) {
  constexpr const char* kBlank = " \t\r";
  const auto first = field.find_first_not_of(kBlank);
  if (first == std::string::npos) return "";
  return field.substr(first, field.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) out.push_back(trimmed(field));
  return out;
}

std::string micros_text(const std::string& nanos, const char* column, const Mark& mark) {
  const auto value = parse_integer(nanos);
  if (!value || *value < 0 || static_cast<double>(*value) > kMaxMicros * 1e3)
    fail(mark, std::string(column) + " is " + quote(nanos) + "; write nanoseconds as an integer");
  return number_text(static_cast<double>(*value) / 1e3);
}

constexpr std::array<std::string_view, 4> kColumns{"layer_index", "numel", "forward_pass_ns",
                                                   "backward_pass_ns"};
constexpr const char* kWriteColumns = "write layer_index,numel,forward_pass_ns,backward_pass_ns";
using Columns = std::array<std::size_t, kColumns.size()>;  // index in a row, by column of kColumns

bool is_header(const std::vector<std::string>& row) {
  return std::any_of(row.begin(), row.end(), [](const std::string& field) {
    return std::find(kColumns.begin(), kColumns.end(), field) != kColumns.end();
  });
}

Columns columns_of(const std::vector<std::string>& header, const Mark& mark) {
  Columns columns{};
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    const auto at = std::find(header.begin(), header.end(), kColumns[c]);
    if (at == header.end())
      fail(mark, "there is no column " + std::string(kColumns[c]) + "; " + kWriteColumns);
    columns[c] = at - header.begin();
  }
  if (header.size() > kColumns.size())
    fail(mark, "a header has " + std::to_string(header.size()) + " columns; " + kWriteColumns);
  return columns;
}

YamlValue csv_layer(const std::vector<std::string>& row, const Columns& at, const Mark& mark) {
  if (row.size() != kColumns.size())
    fail(mark, "a row has " + std::to_string(row.size()) + " fields; " + kWriteColumns);
  YamlValue layer = collection(YamlValue::Kind::map, "", mark);
  layer.children.push_back(scalar("name", "layer" + row[at[0]], mark));
  YamlValue parameters = collection(YamlValue::Kind::list, "parameters", mark);
  parameters.children.push_back(scalar("", row[at[1]], mark));
  layer.children.push_back(std::move(parameters));
  layer.children.push_back(
      scalar("forward_us", micros_text(row[at[2]], "forward_pass_ns", mark), mark));
  layer.children.push_back(
      scalar("backward_us", micros_text(row[at[3]], "backward_pass_ns", mark), mark));
  return layer;
}

// Delays of a recorded step besides those of the layers: before, loss, after, optimizer.
constexpr std::size_t kBesideLayers = 4;

// Reads one list of `recorded_ns`; adds each delay beside the layers to the delay next to it.
StepTimes recorded_step(const YamlValue& row, std::size_t layers) {
  const std::size_t fields = 2 * layers + kBesideLayers;
  if (!row.is_list() || row.children.size() != fields)
    fail(row.mark, "recorded_ns: a step is " + description(row) + "; list " +
                       std::to_string(fields) +
                       " delays: before, forward by layer, loss, backward by layer, after, "
                       "optimizer");
  std::vector<Picoseconds> times;
  for (const YamlValue& field : row.children) {
    const auto nanos = field.is_scalar() ? parse_integer(field.text) : std::nullopt;
    if (!nanos || *nanos < 0 || static_cast<double>(*nanos) > kMaxMicros * 1e3)
      fail(field.mark, "recorded_ns: " + description(field) + " are no nanoseconds from 0 to 1e12");
    times.push_back(*nanos * 1000);
  }
  StepTimes out;
  for (std::size_t i = 0; i < layers; ++i)
    out.layers.push_back({times[1 + i], times[2 + layers + i]});
  out.layers.front().forward += times.front();
  out.layers.back().backward += times[1 + layers];
  out.optimizer = times[fields - 2] + times[fields - 1];
  return out;
}

std::vector<std::vector<StepTimes>> recorded_steps(const YamlValue& ranks, std::size_t layers) {
  if (!ranks.is_list() || ranks.children.empty())
    fail(ranks.mark, "recorded_ns is " + description(ranks) + "; list the ranks");
  std::vector<std::vector<StepTimes>> out;
  for (const YamlValue& steps : ranks.children) {
    if (!steps.is_list() || steps.children.empty())
      fail(steps.mark, "recorded_ns: a rank is " + description(steps) + "; list its steps");
    std::vector<StepTimes> one;
    for (const YamlValue& step : steps.children) one.push_back(recorded_step(step, layers));
    if (!out.empty() && one.size() != out.front().size())
      fail(steps.mark, "recorded_ns: a rank has " + std::to_string(one.size()) +
                           " steps and the first " + std::to_string(out.front().size()) +
                           "; give the same steps of all");
    out.push_back(std::move(one));
  }
  return out;
}

CaptureFacts capture_facts(const YamlValue& value) {
  const Settings given(value, kCaptureKeys, "capture");
  CaptureFacts out;
  out.ranks = given.small("ranks");
  out.backend = given.text("backend");
  out.torch = given.text("torch");
  out.bucket_cap_mb = given.number("bucket_cap_mb");
  out.nic_rate_bps = given.number("nic_rate");
  out.nic_latency = given.micros("nic_latency_us");
  out.step = given.integers("step_ns");
  out.held_out = given.integers("held_out_ns");
  return out;
}

std::vector<std::size_t> bucket_tensors(const Settings& settings, const Model& model,
                                        const Mark& mark) {
  std::vector<std::size_t> out;
  std::size_t sum = 0;
  for (const std::int64_t tensors : settings.integers("buckets")) {
    out.push_back(static_cast<std::size_t>(tensors));
    sum += out.back();
  }
  if (!out.empty() && sum != model.tensors())
    fail(mark, "buckets hold " + std::to_string(sum) + " tensors and the layers " +
                   std::to_string(model.tensors()) + "; they must be as many");
  return out;
}

}  // namespace

std::span<const Key> layers_keys() { return kListKeys; }
std::span<const Key> layer_keys() { return kLayerKeys; }
std::span<const Key> capture_keys() { return kCaptureKeys; }

Model make_layers(const Settings& settings, const Mark& mark) {
  const YamlValue& list = *settings.at("layers").raw;
  if (!list.is_list() || list.children.empty())
    fail(list.mark, "layers is " + description(list) + "; list at least one layer");
  if (list.children.size() > kMaxListed)
    fail(list.mark, "more than " + std::to_string(kMaxListed) + " layers; list fewer");
  Model model;
  model.name = settings.text("name");
  model.measured = true;
  model.dtype = parse_data_type(settings.text("dtype"));
  model.optimizer = settings.micros("optimizer_us");
  for (const YamlValue& one : list.children) {
    const Settings layer(one, kLayerKeys, "layer");
    Layer out;
    out.name =
        layer.given("name") ? layer.text("name") : "layer" + std::to_string(model.layers.size());
    for (const std::int64_t numel : layer.integers("parameters"))
      out.parameters.push_back(
          {std::to_string(out.parameters.size()), static_cast<std::uint64_t>(numel)});
    out.forward = layer.micros("forward_us");
    out.backward = layer.micros("backward_us");
    model.layers.push_back(std::move(out));
  }
  if (model.parameters() == 0)
    fail(mark, "the model has no parameters; there is nothing to reduce");
  model.before_forward = settings.micros("before_us");
  model.layers.front().forward += model.before_forward;
  model.layers.back().backward += settings.micros("loss_us");
  model.before_optimizer = settings.micros("after_us");
  model.optimizer += model.before_optimizer;
  model.running_statistics = settings.integer("float_buffers");
  model.batch_counters = settings.integer("integer_buffers");
  model.buckets = bucket_tensors(settings, model, mark);
  model.find_unused = settings.boolean("find_unused_parameters");
  if (const YamlValue* rows = settings.at("recorded_ns").raw)
    model.recorded = recorded_steps(*rows, model.layers.size());
  if (const YamlValue* facts = settings.at("capture").raw) model.capture = capture_facts(*facts);
  return model;
}

YamlValue read_layer_csv(const std::string& text, const std::string& file,
                         const std::string& name) {
  const auto source = std::make_shared<Source>(Source{file, file, true});
  YamlValue layers = collection(YamlValue::Kind::list, "layers", {source, 1, 1});
  // The byte order mark, which spreadsheets write first.
  constexpr std::string_view kByteOrder = "\xef\xbb\xbf";
  std::istringstream stream(text.starts_with(kByteOrder) ? text.substr(kByteOrder.size()) : text);
  Columns columns{0, 1, 2, 3};
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    const Mark mark{source, ++number, 1};
    const auto row = fields_of(line);
    if (row.empty() || (row.size() == 1 && row[0].empty())) continue;
    if (number == 1 && is_header(row)) {
      columns = columns_of(row, mark);
      continue;
    }
    if (layers.children.size() == kMaxListed)
      fail(mark, "more than " + std::to_string(kMaxListed) + " layers; list fewer");
    layers.children.push_back(csv_layer(row, columns, mark));
  }
  const Mark top{source, 1, 1};
  YamlValue model = collection(YamlValue::Kind::map, "", top);
  model.children.push_back(scalar("kind", "layers", top));
  model.children.push_back(scalar("name", name, top));
  model.children.push_back(std::move(layers));
  return model;
}

}  // namespace ghostrank
