#include "profiles/capture/records.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "profiles/error.h"
#include "profiles/input/yaml.h"
#include "profiles/trace/json_stream.h"

namespace ghostrank {
namespace {

constexpr std::int64_t kMaxNanos = std::int64_t{1} << 61;
constexpr std::int64_t kMaxElements = 1'000'000'000'000;
constexpr std::int64_t kMaxWorld = 65536;
constexpr std::int64_t kMaxBin = 4 * 1100;  // doubles have exponents from -1074 to 1024

class Reader {
 public:
  explicit Reader(const std::string& path) { out_.file = path; }

  CapturedRank run() {
    JsonLines lines(out_.file);
    JsonTape tape;
    while (lines.next(tape)) {
      line_ = lines.line();
      take(tape);
    }
    if (!has_header_) fail("the file has no header; was it written by 'profile capture'?");
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(out_.file + ":" + std::to_string(line_) + ":1: " + what);
  }

  const JsonNode& child(const JsonTape& tape, const JsonNode& object, std::string_view key) const {
    const JsonNode* value = tape.find(object, key);
    if (!value) fail(std::string(key) + " is missing");
    return *value;
  }
  std::int64_t integer(const JsonNode& value, const char* what, std::int64_t most) const {
    if (!value.is_integer() || value.integer < 0 || value.integer > most)
      fail(std::string(what) + " is no integer from 0 to " + std::to_string(most));
    return value.integer;
  }
  std::int64_t integer(const JsonTape& tape, const JsonNode& object, const char* key,
                       std::int64_t most) const {
    return integer(child(tape, object, key), key, most);
  }
  std::string text(const JsonNode& value, const char* what) const {
    if (value.kind != JsonNode::Kind::string) fail(std::string(what) + " is no text");
    return std::string(value.text);
  }
  std::string text(const JsonTape& tape, const JsonNode& object, const char* key) const {
    return text(child(tape, object, key), key);
  }
  // The elements of a list, which must have exactly `count`.
  std::vector<const JsonNode*> fields(const JsonTape& tape, const JsonNode& list, const char* what,
                                      std::size_t count) const {
    std::vector<const JsonNode*> out;
    if (list.kind == JsonNode::Kind::array)
      for (const JsonNode& one : tape.children(list)) out.push_back(&one);
    if (out.size() != count)
      fail(std::string(what) + " is no list of " + std::to_string(count) + " fields");
    return out;
  }
  template <class Take>
  void for_each(const JsonTape& tape, const JsonNode& object, const char* key, std::size_t count,
                const Take& take_fields) const {
    const JsonNode& list = child(tape, object, key);
    if (list.kind != JsonNode::Kind::array) fail(std::string(key) + " is no list");
    for (const JsonNode& one : tape.children(list)) take_fields(fields(tape, one, key, count));
  }
  std::vector<Nanos> moments(const JsonTape& tape, const JsonNode& object, const char* key,
                             std::size_t count) const {
    std::vector<Nanos> out;
    for (const JsonNode* one : fields(tape, child(tape, object, key), key, count)) {
      out.push_back(integer(*one, key, kMaxNanos));
      if (out.size() > 1 && out.back() < out[out.size() - 2])
        fail(std::string(key) + ": times go backward");
    }
    return out;
  }
  std::uint32_t parameter(const JsonNode& value, const char* what) const {
    return static_cast<std::uint32_t>(
        integer(value, what, static_cast<std::int64_t>(out_.parameters.size()) - 1));
  }

  void take(const JsonTape& tape) {
    const JsonNode& root = tape.root();
    if (root.kind != JsonNode::Kind::object) fail("a line is a JSON object");
    if (!has_header_) return take_header(tape, root);
    if (const JsonNode* why = tape.find(root, "refused")) {
      fail("not captured: " + quote(text(*why, "refused")));
    } else if (tape.find(root, "formed")) {
      take_formed(tape, root);
    } else if (tape.find(root, "not_finite")) {
      ++out_.gradients.not_finite;
    } else if (tape.find(root, "magnitudes")) {
      take_gradients(tape, root);
    } else {
      take_step(tape, root);
    }
  }

  void take_header(const JsonTape& tape, const JsonNode& root) {
    if (integer(tape, root, "ghostrank_capture", 1) != 1) fail("not version 1 of these records");
    out_.plain = text(tape, root, "mode") == "plain";
    if (const JsonNode* layers = tape.find(root, "layers")) {
      const std::string by = text(*layers, "layers");
      if (by != kLayersByModule && by != kLayersByBucket)
        fail("layers " + quote(by) + " are none of " + kLayersByModule + ", " + kLayersByBucket);
      out_.layers_are_buckets = by == kLayersByBucket;
    }
    out_.world = static_cast<int>(integer(tape, root, "world", kMaxWorld));
    out_.rank = static_cast<int>(integer(tape, root, "rank", kMaxWorld));
    if (out_.rank >= out_.world) fail("rank " + std::to_string(out_.rank) + " is not in the world");
    if (const JsonNode* group = tape.find(root, "group"))
      for (const JsonNode* one :
           fields(tape, *group, "group", static_cast<std::size_t>(out_.world)))
        out_.group.push_back(static_cast<int>(integer(*one, "group", kMaxWorld)));
    out_.clock = text(tape, root, "clock");
    out_.timer = tape.find(root, "timer") ? text(tape, root, "timer") : kHostTimer;
    if (out_.timer != kHostTimer && out_.timer != kCudaTimer)
      fail("timer " + quote(out_.timer) + " is none of " + kHostTimer + ", " + kCudaTimer);
    out_.torch = text(tape, root, "torch");
    out_.backend = text(tape, root, "backend");
    out_.device = text(tape, root, "device");
    if (tape.find(root, "device_name")) out_.device_name = text(tape, root, "device_name");
    out_.model = text(tape, root, "model");
    out_.bucket_cap_bytes =
        static_cast<std::uint64_t>(integer(tape, root, "bucket_cap_bytes", kMaxElements));
    if (const JsonNode* find = tape.find(root, "find_unused")) {
      if (find->kind != JsonNode::Kind::boolean) fail("find_unused is neither true nor false");
      out_.find_unused = find->integer != 0;
    }
    for_each(tape, root, "parameters", 4, [&](const auto& at) {
      CapturedParameter one{text(*at[0], "a name"), text(*at[1], "a module"),
                            text(*at[3], "a type"), 0};
      one.numel = static_cast<std::uint64_t>(integer(*at[2], "elements", kMaxElements));
      if (one.numel == 0) fail("parameter " + quote(one.name) + " has no elements");
      out_.parameters.push_back(std::move(one));
    });
    for_each(tape, root, "buffers", 2, [&](const auto& at) {
      const std::string type = text(*at[0], "a type");
      (type == "int64" ? out_.integer_buffers : out_.float_buffers) +=
          static_cast<std::uint64_t>(integer(*at[1], "elements", kMaxElements));
      if (type != "int64" && type != "float32")
        fail("a buffer of type " + quote(type) + " is not played; float32 and int64 are");
    });
    if (out_.parameters.empty()) fail("the module has no parameters that are trained");
    has_header_ = true;
  }

  void take_formed(const JsonTape& tape, const JsonNode& root) {
    std::vector<CapturedBucket> formed;
    for_each(tape, root, "formed", 4, [&](const auto& at) {
      const auto index = integer(*at[0], "a bucket's index", kMaxElements);
      if (index != static_cast<std::int64_t>(formed.size())) fail("buckets are not in their order");
      CapturedBucket one{text(*at[1], "a type"), 0, {}};
      one.numel = static_cast<std::uint64_t>(integer(*at[2], "elements", kMaxElements));
      if (at[3]->kind != JsonNode::Kind::array) fail("a bucket without its parameters");
      std::uint64_t sum = 0;
      for (const JsonNode& p : tape.children(*at[3])) {
        one.parameters.push_back(parameter(p, "a bucket's parameter"));
        sum += out_.parameters[one.parameters.back()].numel;
      }
      if (sum != one.numel) fail("a bucket has other elements than its parameters");
      formed.push_back(std::move(one));
    });
    if (!out_.formed.empty() && out_.formed != formed)
      fail("DDP formed other buckets than before; capture a run whose buckets stay");
    out_.formed = std::move(formed);
  }

  void take_gradients(const JsonTape& tape, const JsonNode& root) {
    CapturedGradients& all = out_.gradients;
    all.parameters.resize(out_.parameters.size());
    for_each(tape, root, "magnitudes", 3, [&](const auto& at) {
      const std::uint32_t index = parameter(*at[0], "a parameter");
      CapturedGradients::Tensor& own = all.parameters[index];
      std::uint64_t sum = count(*at[1], "zeros");
      own.zeros += sum;
      if (at[2]->kind != JsonNode::Kind::array) fail("magnitudes are lists");
      for (const JsonNode& bin : tape.children(*at[2])) {
        const auto pair = fields(tape, bin, "magnitudes", 2);
        if (!pair[0]->is_integer() || std::abs(pair[0]->integer) > kMaxBin)
          fail("magnitudes: k is no integer from -" + std::to_string(kMaxBin) + " to " +
               std::to_string(kMaxBin));
        const std::uint64_t elements = count(*pair[1], "elements");
        own.counts[static_cast<std::int32_t>(pair[0]->integer)] += elements;
        sum += elements;
      }
      if (sum > out_.parameters[index].numel)
        fail("magnitudes of " + std::to_string(sum) + " elements of a parameter that has " +
             std::to_string(out_.parameters[index].numel));
    });
    all.block = count(child(tape, root, "block"), "block");
    for_each(tape, root, "blocks", 2, [&](const auto& at) {
      auto& own = all.parameters[parameter(*at[0], "a parameter")].blocks;
      const auto by_ranks =
          fields(tape, *at[1], "blocks", static_cast<std::size_t>(out_.world) + 1);
      own.resize(by_ranks.size());
      for (std::size_t k = 0; k < own.size(); ++k) own[k] += count(*by_ranks[k], "blocks");
    });
  }

  std::uint64_t count(const JsonNode& value, const char* what) const {
    return static_cast<std::uint64_t>(integer(value, what, kMaxElements));
  }

  void take_step(const JsonTape& tape, const JsonNode& root) {
    CapturedStep step;
    step.line = line_;
    step.number = static_cast<std::uint64_t>(integer(tape, root, "step", kMaxElements));
    if (step.number != out_.steps.size() || step.number >= kMaxCapturedSteps)
      fail("step " + std::to_string(step.number) + " where " + std::to_string(out_.steps.size()) +
           " is due; at most " + std::to_string(kMaxCapturedSteps) + " are read");
    step.end = integer(tape, root, "end", kMaxNanos);
    if (!out_.steps.empty() && step.end < out_.steps.back().end) fail("end: times go backward");
    const std::string mode = text(tape, root, "mode");
    if (mode == "on") {
      step.mode = CapturedStep::Mode::on;
      take_recorded(tape, root, step);
    } else if (mode == "off") {
      step.mode = CapturedStep::Mode::off;
    } else if (mode == "switch") {
      step.mode = CapturedStep::Mode::change;
    } else if (mode != "warm") {
      fail("mode " + quote(mode) + " is none of on, off, switch, warm");
    }
    out_.steps.push_back(std::move(step));
  }

  void take_recorded(const JsonTape& tape, const JsonNode& root, CapturedStep& step) {
    if (out_.steps.empty()) fail("the first step has no begin");
    if (const auto forwards = integer(tape, root, "forwards", kMaxElements); forwards != 1)
      fail("a step has " + std::to_string(forwards) +
           " forwards; the accumulation of gradients over several is not captured");
    const auto forward = moments(tape, root, "forward", 3);
    const auto backward = moments(tape, root, "backward", 2);
    const auto optimizer = moments(tape, root, "optimizer", 2);
    step.forward_begin = forward[0];
    step.forward_synced = forward[1];
    step.forward_end = forward[2];
    step.backward_begin = backward[0];
    step.backward_end = backward[1];
    step.optimizer_begin = optimizer[0];
    if (step.forward_begin < out_.steps.back().end || step.backward_begin < step.forward_end ||
        step.optimizer_begin < step.backward_end || step.end != optimizer[1])
      fail("a step is no forward, backward and optimizer behind each other");
    step.data = integer(tape, root, "data", kMaxNanos);
    take_moments(tape, root, "modules", step.modules);
    take_moments(tape, root, "gradients", step.gradients);
    for_each(tape, root, "buckets", 4, [&](const auto& at) {
      CapturedReduction one;
      one.bucket = static_cast<std::uint32_t>(integer(*at[0], "a bucket", kMaxWorld * 16));
      one.bytes = static_cast<std::uint64_t>(integer(*at[1], "bytes", kMaxElements * 8));
      one.launched = integer(*at[2], "a launch", kMaxNanos);
      one.ended = integer(*at[3], "an end", kMaxNanos);
      if (one.ended < one.launched) fail("a bucket's all-reduce has not ended");
      step.buckets.push_back(one);
    });
    for_each(tape, root, "calls", 4, [&](const auto& at) {
      step.calls.push_back({text(*at[0], "a call"), static_cast<std::uint64_t>(integer(
                                                        *at[1], "bytes", kMaxElements * 8))});
    });
  }

  void take_moments(const JsonTape& tape, const JsonNode& root, const char* key,
                    std::vector<CapturedMoment>& out) const {
    for_each(tape, root, key, 2, [&](const auto& at) {
      out.push_back({parameter(*at[0], key), integer(*at[1], key, kMaxNanos)});
      if (out.size() > 1 && out.back().at < out[out.size() - 2].at)
        fail(std::string(key) + ": times go backward");
    });
  }

  CapturedRank out_;
  bool has_header_ = false;
  std::uint64_t line_ = 1;
};

}  // namespace

CapturedRank read_captured_rank(const std::string& path) { return Reader(path).run(); }

std::vector<std::string> capture_files(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("rank") && name.ends_with(".jsonl")) files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<CapturedRank> read_capture(const std::string& folder) {
  const std::vector<std::string> files = capture_files(folder);
  if (files.empty())
    throw Error(folder +
                ": there are no records (rank*.jsonl); did the script train a "
                "DistributedDataParallel module?");
  std::vector<CapturedRank> out;
  for (const std::string& file : files) out.push_back(read_captured_rank(file));
  return out;
}

}  // namespace ghostrank
