// Descriptions of common nodes, the input of NCCL's search (nccl/machine/search.h):
//
//   template        GPUs                  NICs      PCIe switches
//   one-gpu         1 H100                1x200G    1
//   one-gpu-400g    1 H100                1x400G    1
//   hgx-h100-400g   8 H100, NVLink switch 8x400G    8, one GPU and one NIC each
//   hgx-h100-200g   8 H100, NVLink switch 8x200G    8, one GPU and one NIC each
//   hgx-h100-4nic   8 H100, NVLink switch 4x400G    4, two GPUs and one NIC each
//   hgx-h100-1nic   8 H100, NVLink switch 1x400G    8, one GPU each; the NIC is below the first
//   dgx-a100        8 A100, NVLink switch 8x200G    4, two GPUs and two NICs each
//
// All have two CPUs, of Intel unless the caller says otherwise. Their PCIe links are of the GPU's
// generation, 16 lanes wide.
//
// Units: 10^9 bytes per second. Threading: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "collectives/nccl/machine/machine.h"

namespace ghostrank {

std::vector<std::string_view> nccl_template_names();
// Throws std::invalid_argument if there is no such template.
NcclMachine nccl_template(std::string_view name);

// A node that is described by numbers alone: every GPU has a PCIe switch, with the NICs beside it.
// With fewer NICs than GPUs, but at least one for two, GPUs share the NICs' switches; on A100 nodes
// two GPUs always share one.
struct NcclMachineShape {
  int gpus = 8;
  int nics = 8;
  double nic_GBps = 50;
  int compute_capability = 90;
};
NcclMachine nccl_machine(const NcclMachineShape& shape);

}  // namespace ghostrank
