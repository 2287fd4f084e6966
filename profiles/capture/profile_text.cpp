#include "profiles/capture/profile_text.h"

#include <cmath>
#include <cstdio>

#include "profiles/input/quantity.h"
#include "profiles/median.h"

namespace ghostrank {
namespace {

// A comment of one line: control characters become blanks.
std::string commented(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return "# " + text + "\n";
}

template <class Numbers>
std::string list(const Numbers& numbers) {
  std::string out = "[";
  for (const auto number : numbers) out += (out.size() > 1 ? ", " : "") + std::to_string(number);
  return out + "]";
}

// Median over all ranks and steps of what `take` finds in one.
template <class Take>
Nanos middle(const Captured& captured, const Take& take) {
  std::vector<Nanos> values;
  for (const auto& rank : captured.delays)
    for (const CaptureDelays& step : rank) values.push_back(take(step));
  return median(std::move(values));
}

std::vector<Nanos> row(const CaptureDelays& step) {
  std::vector<Nanos> out{step.before};
  out.insert(out.end(), step.forward.begin(), step.forward.end());
  out.push_back(step.loss);
  out.insert(out.end(), step.backward.begin(), step.backward.end());
  out.push_back(step.after);
  out.push_back(step.optimizer);
  return out;
}

std::string layer_lines(const Captured& captured) {
  std::string out = "layers:\n";
  for (std::size_t i = 0; i < captured.layers.size(); ++i) {
    const CaptureLayer& layer = captured.layers[i];
    const auto forward = [i](const CaptureDelays& step) { return step.forward[i]; };
    const auto backward = [i](const CaptureDelays& step) { return step.backward[i]; };
    out += "  - {name: " + yaml_quoted(layer.name) + ", parameters: " + list(layer.parameters) +
           ", forward_us: " + micros_text(middle(captured, forward)) +
           ", backward_us: " + micros_text(middle(captured, backward)) + "}\n";
  }
  return out;
}

std::string capture_lines(const Captured& captured, const CaptureNetwork& network) {
  std::vector<Nanos> buckets;
  for (std::size_t b = 0; b < captured.buckets.size(); ++b) {
    std::vector<Nanos> times;
    for (const auto& step : captured.reductions)
      if (b < step.size()) times.push_back(step[b].ended - step[b].launched);
    buckets.push_back(quantile(std::move(times), kQuick));
  }
  char numbers[160];
  std::snprintf(numbers, sizeof numbers,
                "  bucket_cap_mb: %.9g\n  nic_rate: %s\n  nic_latency_us: %.3f\n",
                static_cast<double>(captured.bucket_cap_bytes) / (1 << 20),
                measured_rate_text(network.rate_bps).c_str(), network.latency_us);
  return "capture:\n  ranks: " + std::to_string(captured.ranks) +
         "\n  backend: " + yaml_quoted(captured.backend) +
         "\n  torch: " + yaml_quoted(captured.torch) + "\n" + numbers +
         "  step_ns: " + list(captured.step) + "\n  held_out_ns: " + list(captured.held_out) +
         "\n  bucket_ns: " + list(buckets) + "\n";
}

}  // namespace

std::string micros_text(double nanos) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", nanos * 1e-3);
  return text;
}

std::string yaml_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    char escaped[8];
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (byte < 0x20 || byte == 0x7f) {
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string capture_profile(const Captured& captured, const CaptureNetwork& network,
                            const std::string& name, const std::vector<std::string>& comments) {
  std::string out;
  for (const std::string& line : comments) out += commented(line);
  const auto delay = [&](const char* key, Nanos CaptureDelays::*member) {
    const auto take = [member](const CaptureDelays& step) { return step.*member; };
    return std::string(key) + ": " + micros_text(middle(captured, take)) + "\n";
  };
  out += "schema: ghostrank/model/1\nkind: layers\nname: " + yaml_quoted(name) +
         "\ndtype: " + captured.type + "\n" + delay("before_us", &CaptureDelays::before) +
         layer_lines(captured) + delay("loss_us", &CaptureDelays::loss) +
         delay("after_us", &CaptureDelays::after) +
         delay("optimizer_us", &CaptureDelays::optimizer);
  if (captured.float_buffers > 0)
    out += "float_buffers: " + std::to_string(captured.float_buffers) + "\n";
  if (captured.integer_buffers > 0)
    out += "integer_buffers: " + std::to_string(captured.integer_buffers) + "\n";
  out += "buckets: " + list(captured.buckets) + "\n";
  if (captured.find_unused) out += "find_unused_parameters: true\n";
  out += capture_lines(captured, network);
  out += "recorded_ns:\n";
  for (const auto& rank : captured.delays) {
    out += "  -\n";
    for (const CaptureDelays& step : rank) out += "    - " + list(row(step)) + "\n";
  }
  return out;
}

}  // namespace ghostrank
