#include "tools/calibrate/measured_device.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

#include "profiles/capture/profile_text.h"
#include "profiles/device/device.h"
#include "profiles/device/kernels/tables.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

// What a GPU calls itself, and the profile with its published numbers; "": there is none. The first
// that fits counts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kPublished{
    {{"H100 PCIe", "h100-pcie"},
     {"H100 80GB HBM3", "h100-sxm"},
     {"H200 NVL", ""},
     {"H200", "h200-sxm"},
     {"B200", "b200-sxm"},
     {"A100-SXM4-80GB", "a100-sxm-80gb"},
     {"A100-SXM4-40GB", "a100-sxm-40gb"},
     {"V100-SXM2", "v100-sxm2"},
     {"RTX 2080 Ti", "rtx2080ti"}}};

// Whether `name` has these words as whole ones: a GH200 is no H200.
bool has_words(std::string_view name, std::string_view words) {
  const auto goes_on = [&](std::size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at]));
  };
  for (std::size_t at = name.find(words); at != name.npos; at = name.find(words, at + 1))
    if (!(at > 0 && goes_on(at - 1)) && !goes_on(at + words.size())) return true;
  return false;
}

std::string indented(const std::string& table) {
  std::string out = "    ";
  for (std::size_t i = 0; i + 1 < table.size(); ++i) {
    out += table[i];
    if (table[i] == '\n') out += "    ";
  }
  return out + "\n";
}

std::string table_of(const char* key, std::size_t rows, const std::string& csv) {
  return rows == 0 ? "" : "  " + std::string(key) + ": |\n" + indented(csv);
}

std::string described(const DeviceProfile& d) {
  std::string peaks;
  for (const auto& [type, word] : kOperandTypes)
    if (const double peak = peak_tflops(d, type); peak > 0)
      peaks += (peaks.empty() ? "" : ", ") + std::string(word) + ": " + significant(peak, 4);
  return "peak_tflops: {" + peaks + "}\nefficiency: " + significant(d.efficiency) +
         "\nmemory_GBps: " + significant(d.memory_GBps, 4) +
         "\nmemory_bytes: " + std::to_string(static_cast<std::uint64_t>(d.memory_bytes)) +
         "\ncompute_capability: " + significant(d.compute_capability) +
         "\nmultiprocessors: " + std::to_string(d.multiprocessors) + "\n";
}

// True if a profile in any folder can name its base, and the base adds no tables to the profile's.
bool is_shipped(const MeasuredDevice& measured) {
  return !measured.base.empty() && measured.base.find_first_of("/.") == std::string::npos &&
         !measured.device.measured;
}

}  // namespace

std::string published_profile(const std::string& name) {
  for (const auto& [part, profile] : kPublished)
    if (has_words(name, part)) return std::string(profile);
  return "";
}

void settle(MeasuredDevice& measured) {
  constexpr double kDigits = 1000;
  DeviceProfile& device = measured.device;
  const auto rounded = [](double share) { return std::round(share * kDigits) / kDigits; };
  // The type with most measured products stands for the others.
  std::array<std::vector<MeasuredProduct>, std::size(kOperandTypes)> by_type;
  for (const MeasuredProduct& one : measured.tables.products)
    by_type[static_cast<std::size_t>(one.shape.type)].push_back(one);
  const auto most =
      std::max_element(by_type.begin(), by_type.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (!most->empty()) {
    const OperandType type = most->front().shape.type;
    const double peak = peak_tflops(device, type);
    const KernelFormula formula =
        fitted_formula(stated_formula(device, peak), *most, bytes_of(type));
    device.kernels.matmul = std::clamp(rounded(formula.flops_per_second / (peak * 1e12)), .001, 1.);
  }
  const MeasuredTransfer* largest = nullptr;
  for (const MeasuredTransfer& one : measured.tables.transfers)
    if (one.kind == MemoryKernel::elementwise && (!largest || one.bytes > largest->bytes))
      largest = &one;
  if (largest)
    device.kernels.memory = std::clamp(
        rounded(largest->bytes / largest->seconds * 1e-9 / device.memory_GBps), .001, 1.);
  device.kernel_error = std::min(1., rounded(held_out_error(measured.tables, device)));
}

std::string measured_device_yaml(const MeasuredDevice& measured) {
  const DeviceProfile& d = measured.device;
  const KernelTables& tables = measured.tables;
  std::string text;
  for (const std::string& line : measured.how) text += "# " + line + "\n";
  text += "schema: ghostrank/device/1\nname: " + yaml_quoted(measured.name) + "\n";
  text += is_shipped(measured) ? "base: " + measured.base + "\n" : described(d);
  text += "kernels:\n  matmul: " + significant(d.kernels.matmul) +
          "\n  memory: " + significant(d.kernels.memory) +
          "\n  launch_us: " + significant(d.kernels.launch_us) +
          "\n  host_us: " + significant(d.kernels.host_us) + "\n";
  text += table_of("products", tables.products.size(), products_csv(tables)) +
          table_of("transfers", tables.transfers.size(), transfers_csv(tables)) +
          table_of("attention", tables.attention.size(), attention_csv(tables));
  return text +
         "calibration: measured\nstep_time_error: 0\nkernel_error: " + significant(d.kernel_error) +
         "\nsource: " + yaml_quoted(measured.source) + "\n";
}

}  // namespace ghostrank
