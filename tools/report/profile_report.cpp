#include "tools/report/profile_report.h"

#include <algorithm>
#include <cmath>

#include "profiles/real.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

constexpr int kBar = 30;  // characters of the longest bar

// "291.6 GFLOP", "383.9 TFLOP"
std::string flop(double n) {
  return n < 1e12 ? significant(n * 1e-9) + " GFLOP" : significant(n * 1e-12) + " TFLOP";
}

std::uint64_t parameters_of(const Layer& layer) {
  std::uint64_t sum = 0;
  for (const ParameterTensor& tensor : layer.parameters) sum += tensor.numel;
  return sum;
}

bool alike(const Layer& a, const Layer& b) {
  return a.forward_flops == b.forward_flops && a.forward == b.forward && a.backward == b.backward &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(), [](const ParameterTensor& x, const ParameterTensor& y) {
                      return x.name == y.name && x.numel == y.numel;
                    });
}

std::string bar(double share) {
  std::string text;
  for (int i = 0; i < static_cast<int>(std::lround(share * kBar)); ++i) text += "█";
  return text;
}

// Quotes a scalar where YAML needs it, so that it reads back as the same text, except that a
// newline becomes a space.
std::string scalar(const YamlValue& value) {
  const bool plain = !value.quoted && !value.text.empty() &&
                     value.text.find_first_of(":#{}[],&*!|>'\"%@`\n\t\\ ") == std::string::npos;
  if (plain) return value.text;
  std::string text = "\"";
  for (const char c : value.text) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text + "\"";
}

std::string inner(const YamlValue& value) {
  if (value.is_scalar()) return scalar(value);
  if (!value.is_list() && !value.is_map()) return "null";
  std::string text;
  for (const YamlValue& child : value.children)
    text += (text.empty() ? "" : ", ") + (value.is_map() ? child.key + ": " : "") + inner(child);
  return value.is_map() ? "{" + text + "}" : "[" + text + "]";
}

// A list whose items have a line each.
bool has_rows(const YamlValue& value) {
  return value.is_list() && !value.children.empty() && !value.children.front().is_scalar();
}

std::string rows(const YamlValue& list, const std::string& indent) {
  std::string text;
  for (const YamlValue& row : list.children)
    text +=
        indent + "-" + (has_rows(row) ? "\n" + rows(row, indent + "  ") : " " + inner(row) + "\n");
  return text;
}

}  // namespace

std::vector<LayerRun> layer_runs(const Model& model) {
  std::vector<LayerRun> runs;
  const Layer* before = nullptr;
  for (const Layer& layer : model.layers) {
    if (before == nullptr || !alike(*before, layer))
      runs.push_back({layer.name, "", 0, layer.parameters.size(), parameters_of(layer),
                      layer.forward_flops, layer.forward, layer.backward});
    runs.back().last = layer.name;
    ++runs.back().layers;
    before = &layer;
  }
  return runs;
}

std::string model_text(const Model& model, const Paint& paint) {
  std::string text = paint.bold(model.name) + ": " + model.kind;
  if (!model.architecture.empty()) text += ", " + model.architecture;
  text += "; " + humane_count(real(model.tensors()), "tensor") + ", " +
          humane_count(real(model.parameters()), "parameter") + "\n\n";
  Table table{{{"layers"},
               {"count", Align::right},
               {"tensors", Align::right},
               {"parameters", Align::right},
               {model.measured ? "forward" : "GFLOP/sample", Align::right},
               {model.measured ? "backward" : "", Align::right},
               {"of all parameters", Align::right},
               {""}},
              {}};
  for (const LayerRun& run : layer_runs(model)) {
    const double share =
        real(run.parameters * run.layers) / std::max(1.0, real(model.parameters()));
    table.rows.push_back({run.layers > 1 ? run.first + " .. " + run.last : run.first,
                          humane_count(real(run.layers)), humane_count(real(run.tensors)),
                          humane_count(real(run.parameters)),
                          model.measured ? humane_seconds(seconds(run.forward))
                                         : significant(run.forward_flops * 1e-9),
                          model.measured ? humane_seconds(seconds(run.backward)) : "",
                          humane_percent(share), bar(share)});
  }
  text += render(table) + "\n";
  std::vector<Fact> facts{{"fp32", humane_bytes(4 * real(model.parameters()))},
                          {"bf16", humane_bytes(2 * real(model.parameters()))}};
  if (!model.measured)
    facts.push_back({"forward", flop(model.forward_flops()) + " per sample, backward twice that"});
  if (model.sequence > 0)
    facts.push_back({"sample", humane_count(model.sequence, "token") + ", vocabulary " +
                                   humane_count(real(model.vocabulary))});
  return text + render(facts);
}

std::string yaml_text(const YamlValue& map) {
  std::string text;
  for (const YamlValue& child : map.children) {
    text += child.key + ":";
    if (has_rows(child))
      text += "\n" + rows(child, "  ");
    else
      text += " " + inner(child) + "\n";
  }
  return text;
}

}  // namespace ghostrank
