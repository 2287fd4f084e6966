#include "collectives/nccl/machine/templates.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace ghostrank {
namespace {

struct Template {
  std::string_view name;
  NcclMachineShape shape;
};
constexpr std::array kTemplates{
    Template{"one-gpu", {1, 1, 25, 90}},       Template{"one-gpu-400g", {1, 1, 50, 90}},
    Template{"hgx-h100-400g", {8, 8, 50, 90}}, Template{"hgx-h100-200g", {8, 8, 25, 90}},
    Template{"hgx-h100-4nic", {8, 4, 50, 90}}, Template{"hgx-h100-1nic", {8, 1, 50, 90}},
    Template{"dgx-a100", {8, 8, 25, 80}}};

}  // namespace

std::vector<std::string_view> nccl_template_names() {
  std::vector<std::string_view> names;
  for (const Template& t : kTemplates) names.push_back(t.name);
  return names;
}

NcclMachine nccl_template(std::string_view name) {
  std::string known;
  for (const Template& t : kTemplates) {
    known += (known.empty() ? "" : ", ") + std::string(t.name);
    if (t.name != name) continue;
    NcclMachine machine = nccl_machine(t.shape);
    machine.name = name;
    return machine;
  }
  throw std::invalid_argument("there is no node template '" + std::string(name) + "'; known are " +
                              known);
}

NcclMachine nccl_machine(const NcclMachineShape& shape) {
  const bool hopper = shape.compute_capability >= 90;
  const double lanes_GBps = hopper ? 48 : 24;  // PCIe 5.0 or 4.0
  // On the A100 nodes known to us, two GPUs share a switch with their NICs.
  const int pairs = (shape.gpus + 1) / 2;
  const bool shared = !hopper || (shape.nics >= pairs && shape.nics < shape.gpus);
  const int bridges = shared ? std::max(pairs, hopper ? shape.nics : 1) : shape.gpus;
  NcclMachine machine;
  machine.name = std::to_string(shape.gpus) + " GPUs, " + std::to_string(shape.nics) + " NICs";
  machine.compute_capability = shape.compute_capability;
  machine.cpus.assign(2, {});
  for (int b = 0; b < bridges; ++b) machine.bridges.push_back({-1, 2 * b / bridges, lanes_GBps});
  for (int g = 0; g < shape.gpus; ++g)
    machine.gpus.push_back(
        {{g * bridges / shape.gpus, 0, lanes_GBps}, shape.gpus > 1 ? (hopper ? 18 : 12) : 0});
  for (int n = 0; n < shape.nics; ++n)
    machine.nics.push_back({{n * bridges / shape.nics, 0, lanes_GBps},
                            shape.nic_GBps,
                            0,
                            static_cast<std::uint64_t>(n)});
  return machine;
}

}  // namespace ghostrank
