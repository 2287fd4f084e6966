// A node as NCCL describes it: the XML that a run writes with NCCL_TOPO_DUMP_FILE. NCCL's search
// (collectives/nccl/machine/search.h) runs on it for any communicator. Derived from NCCL's source
// (2.28.9, 2.30.7).
//
//   <system version="1">
//     <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143" ...>
//       <pci busid="0000:15:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16" ...>
//         <pci busid="0000:19:00.0" class="0x030200" ...>
//           <gpu dev="0" sm="90" rank="0" gdr="1">
//             <nvlink target="0000:04:00.0" count="18" tclass="0x068000"/>
//         <pci busid="0000:1a:00.0" class="0x020700" ...>
//           <nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x.." gdr="1"/></nic>
//
// GPUs are numbered by `dev`, NICs by `dev`; both must begin at 0 and have no gaps, so the dump
// must be of a communicator with all GPUs of its node. Refused, because the search does not model
// them: several hosts in one file, CPUs other than x86, C2C links, links between PCIe switches,
// NVLinks to CPUs.
//
// The input is not trusted: size and counts are bounded. Threading: keeps no state.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collectives/nccl/machine/machine.h"

namespace ghostrank {

// True if the text is such a topology and no graph dump.
bool is_nccl_topology_text(std::string_view text);

// `file` names the text in messages.
std::shared_ptr<const NcclMachine> parse_nccl_topology(std::string_view text,
                                                       const std::string& file);

}  // namespace ghostrank
