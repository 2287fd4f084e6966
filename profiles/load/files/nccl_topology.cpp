#include "profiles/load/files/nccl_topology.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "profiles/load/files/nccl_graph.h"
#include "profiles/load/files/nccl_xml.h"

namespace ghostrank {
namespace {

using Element = NcclXml::Element;

constexpr int kMostDevices = 64, kMostBridges = 256, kMostCpus = 16, kMostDepth = 32;
constexpr std::uint64_t kMostId = 0xffffffffffffffff;

// The rate of one PCIe lane in units of 100 Mbit/s, by its signalling rate; NCCL takes 60 for an
// unknown rate.
constexpr std::array<std::pair<std::string_view, int>, 6> kLanes{
    {{"2.5", 15}, {"5", 30}, {"8", 60}, {"16", 120}, {"32", 240}, {"64", 480}}};
constexpr int kUnknownLane = 60, kWholeWidth = 16;
constexpr double kLaneUnitsPerGBps = 80;
constexpr double kMbpsPerGBps = 8000;
constexpr int kUnknownMbps = 10000;
constexpr double kOnBoardGBps = 5000;  // a NIC without a PCI device

// GB/s between two CPUs.
constexpr double kAmdGBps = 16, kOtherGBps = 5000;
struct IntelLink {
  std::int64_t model;  // of family 6, this one and later ones
  double GBps;
};
constexpr std::array<IntelLink, 3> kIntelLinks{{{0xCF, 40}, {0x8F, 22}, {0x55, 10}}};
constexpr double kOldIntelGBps = 6;

// Broadcom's switches show two levels of bridges, but are one switch.
int broadcom_generation(std::uint64_t id, int level) {
  const std::uint64_t model = id & 0xfffffffffffff000;
  if (model == 0x1000c0101000a000) return 4;
  if (model == (0x1000c03010000000 | static_cast<std::uint64_t>(level) * 0x1000)) return 5;
  return 0;
}

class MachineReader {
 public:
  explicit MachineReader(const std::string& file)
      : in_{file, "give the file that NCCL_TOPO_DUMP_FILE wrote"} {}

  NcclMachine read(std::string_view text);

 private:
  struct Link {  // an NVLink, by the PCI addresses of its ends
    std::string to;
    int count = 0;
    bool to_switch = false;
    int line = 0;
  };
  struct Gpu {
    NcclMachine::Gpu description;
    std::string busid;
    std::vector<Link> links;
  };

  void read_cpu(const Element& e);
  void read_pci(const Element& e, NcclMachine::Uplink above, int depth);
  void read_bridge(const Element& e, NcclMachine::Uplink up, int depth);
  void read_gpu(const Element& gpu, const Element& pci, const NcclMachine::Uplink& up);
  void read_nics(const Element& nic, const NcclMachine::Uplink& up);
  NcclMachine::Uplink uplink(const Element& pci, NcclMachine::Uplink above) const;
  void refuse(const Element& e, const std::string& what) const {
    in_.fail_at(e.GetLineNum(), what + " is not modelled");
  }
  void finish(const Element& root);

  NcclXml in_;
  NcclMachine machine_;
  std::map<int, Gpu> gpus_;               // by dev
  std::map<int, NcclMachine::Nic> nics_;  // by dev
  std::vector<std::uint64_t> bridge_ids_;
  std::set<std::string> hosts_;
  bool has_cpu_ = false;
};

NcclMachine::Uplink MachineReader::uplink(const Element& pci, NcclMachine::Uplink above) const {
  // NCCL writes an empty width for a device that /sys does not have.
  const char* lanes = pci.Attribute("link_width");
  std::int64_t width = lanes && *lanes ? in_.integer(pci, "link_width", 0, 64) : 0;
  if (width == 0) width = kWholeWidth;
  const char* speed = pci.Attribute("link_speed");
  const std::string_view text = speed ? speed : "";
  int lane = kUnknownLane;
  for (const auto& [rate, units] : kLanes) {
    const std::string whole = std::string(rate) + " GT/s", tenths = std::string(rate) + ".0 GT/s";
    if (text.starts_with(whole) || text.starts_with(tenths)) lane = units;
  }
  above.GBps = static_cast<double>(width * lane) / kLaneUnitsPerGBps;
  return above;
}

void MachineReader::read_cpu(const Element& e) {
  if (machine_.cpus.size() == kMostCpus) in_.fail_at(e.GetLineNum(), "there are over 16 CPUs");
  if (const char* host = e.Attribute("host_hash")) hosts_.insert(host);
  if (hosts_.size() > 1) refuse(e, "a system of several hosts");
  if (in_.attribute(e, "arch") != "x86_64") refuse(e, "a CPU other than x86_64");
  const std::string vendor = in_.attribute(e, "vendor");
  NcclMachine::Cpu cpu{kOtherGBps};
  NcclCpu kind = NcclCpu::other;
  if (vendor == "GenuineIntel") {
    kind = NcclCpu::intel;
    const bool family_6 = in_.integer(e, "familyid", 0, 1 << 20) == 6;
    const std::int64_t model = in_.integer(e, "modelid", 0, 1 << 20);
    const auto known = std::find_if(kIntelLinks.begin(), kIntelLinks.end(),
                                    [&](const IntelLink& l) { return model >= l.model; });
    cpu.GBps = family_6 && known != kIntelLinks.end() ? known->GBps : kOldIntelGBps;
  } else if (vendor == "AuthenticAMD") {
    kind = NcclCpu::amd;
    cpu.GBps = kAmdGBps;
  }
  if (!has_cpu_) machine_.vendor = kind;
  has_cpu_ = true;
  machine_.cpus.push_back(cpu);
  const NcclMachine::Uplink below{-1, static_cast<int>(machine_.cpus.size()) - 1, 0};
  for (auto* child = e.FirstChildElement(); child; child = child->NextSiblingElement()) {
    const std::string_view name = child->Name();
    if (name == "pci") read_pci(*child, below, 0);
    if (name == "nic") read_nics(*child, {-1, below.cpu, kOnBoardGBps});
  }
}

void MachineReader::read_pci(const Element& e, NcclMachine::Uplink above, int depth) {
  if (depth > kMostDepth) in_.fail_at(e.GetLineNum(), "PCI devices are nested too deeply");
  const NcclMachine::Uplink up = uplink(e, above);
  const Element* gpu = e.FirstChildElement("gpu");
  const Element* nic = e.FirstChildElement("nic");
  if (gpu) read_gpu(*gpu, e, up);
  if (nic) read_nics(*nic, up);
  if (!gpu && !nic) read_bridge(e, up, depth);
}

void MachineReader::read_bridge(const Element& e, NcclMachine::Uplink up, int depth) {
  if (e.FirstChildElement("pcilink")) refuse(e, "a link between PCIe switches");
  if (!e.FirstChildElement("pci")) return;
  std::uint64_t id = 0;
  for (const char* part : {"vendor", "device", "subsystem_vendor", "subsystem_device"})
    id = id << 16 | in_.integer_or(e, part, 0, 0, 0xffff, 16);
  const int level_1 = broadcom_generation(id, 1);
  const bool part_of_above =
      up.bridge >= 0 && level_1 > 0 && broadcom_generation(bridge_ids_[up.bridge], 0) == level_1;
  if (!part_of_above) {
    if (bridge_ids_.size() == kMostBridges)
      in_.fail_at(e.GetLineNum(), "there are over 256 PCIe switches");
    bridge_ids_.push_back(id);
    machine_.bridges.push_back(up);
    up.bridge = static_cast<int>(machine_.bridges.size()) - 1;
  }
  for (auto* child = e.FirstChildElement("pci"); child; child = child->NextSiblingElement("pci"))
    read_pci(*child, up, depth + 1);
}

void MachineReader::read_gpu(const Element& gpu, const Element& pci,
                             const NcclMachine::Uplink& up) {
  const auto dev = static_cast<int>(in_.integer(gpu, "dev", 0, kMostDevices - 1));
  const auto sm = static_cast<int>(in_.integer(gpu, "sm", 10, 999));
  if (gpus_.empty()) machine_.compute_capability = sm;
  machine_.compute_capability = std::min(machine_.compute_capability, sm);
  Gpu made;
  made.description.up = up;
  made.description.rdma = in_.integer_or(gpu, "gdr", 0, 0, 1) == 1;
  made.busid = in_.attribute(pci, "busid");
  for (auto* e = gpu.FirstChildElement(); e; e = e->NextSiblingElement()) {
    if (std::string_view(e->Name()) == "c2c") refuse(*e, "a C2C link");
    if (std::string_view(e->Name()) != "nvlink") continue;
    const std::string kind = in_.attribute(*e, "tclass");
    if (kind.starts_with("0x068001")) refuse(*e, "an NVLink to a CPU");
    const bool to_gpu = kind.starts_with("0x03");
    made.links.push_back({to_gpu ? in_.attribute(*e, "target") : "",
                          static_cast<int>(in_.integer(*e, "count", 1, 1000)), !to_gpu,
                          e->GetLineNum()});
  }
  if (!gpus_.emplace(dev, std::move(made)).second)
    in_.fail_at(gpu.GetLineNum(), "there are two GPUs with dev " + std::to_string(dev));
}

void MachineReader::read_nics(const Element& nic, const NcclMachine::Uplink& up) {
  for (auto* e = nic.FirstChildElement("net"); e; e = e->NextSiblingElement("net")) {
    if (!e->Attribute("dev")) continue;  // NCCL leaves it out, too
    const auto dev = static_cast<int>(in_.integer(*e, "dev", 0, kMostDevices - 1));
    std::int64_t mbps = in_.integer_or(*e, "speed", 0, -1, 100'000'000);
    if (mbps <= 0) mbps = kUnknownMbps;
    NcclMachine::Nic made;
    made.up = up;
    made.GBps = static_cast<double>(mbps) / kMbpsPerGBps;
    made.latency_us = e->Attribute("latency") ? in_.real(*e, "latency") : 0;
    made.asic = in_.integer_or<std::uint64_t>(*e, "guid", dev, 0, kMostId, 16);
    made.port = static_cast<int>(in_.integer_or(*e, "port", 0, 0, 1000));
    made.rdma = in_.integer_or(*e, "gdr", 0, 0, 1) == 1;
    if (!nics_.emplace(dev, made).second)
      in_.fail_at(e->GetLineNum(), "there are two NICs with dev " + std::to_string(dev));
  }
}

void MachineReader::finish(const Element& root) {
  const auto demand_all = [&](const auto& devices, const char* what) {
    if (!devices.empty() && devices.rbegin()->first + 1 != static_cast<int>(devices.size()))
      in_.fail_at(root.GetLineNum(), std::string("the ") + what +
                                         " are not numbered 0, 1, ...: the dump is not of a whole "
                                         "node");
  };
  if (gpus_.empty()) in_.fail_at(root.GetLineNum(), "there is no GPU");
  demand_all(gpus_, "GPUs");
  demand_all(nics_, "NICs");
  for (auto& [dev, gpu] : gpus_) {
    for (const Link& link : gpu.links) {
      if (link.to_switch) {
        gpu.description.switch_links += link.count;
        continue;
      }
      const auto peer = std::find_if(gpus_.begin(), gpus_.end(), [&](const auto& other) {
        return other.second.busid == link.to;
      });
      if (peer == gpus_.end()) in_.fail_at(link.line, "there is no GPU at " + quote(link.to));
      auto& links = gpu.description.peer_links;
      const auto known = std::find_if(links.begin(), links.end(),
                                      [&](const auto& l) { return l.first == peer->first; });
      if (known == links.end())
        links.emplace_back(peer->first, link.count);
      else
        known->second += link.count;
    }
    machine_.gpus.push_back(gpu.description);
  }
  for (const auto& [dev, nic] : nics_) machine_.nics.push_back(nic);
}

NcclMachine MachineReader::read(std::string_view text) {
  if (text.size() > kMaxGraphBytes) in_.fail_at(1, "the file is larger than 1 MiB");
  tinyxml2::XMLDocument document;
  const Element& root = in_.parse(document, text, "system");
  in_.integer(root, "version", 1, 1);
  machine_.name = "topology file";
  machine_.cpus.clear();
  for (auto* e = root.FirstChildElement(); e; e = e->NextSiblingElement()) {
    if (std::string_view(e->Name()) != "cpu")
      in_.fail_at(e->GetLineNum(), std::string("<system> has <cpu>, not <") + e->Name() + ">");
    read_cpu(*e);
  }
  finish(root);
  if (machine_.compute_capability < 80 || machine_.compute_capability >= 100)
    in_.fail_at(root.GetLineNum(), "GPUs with sm " + std::to_string(machine_.compute_capability) +
                                       " are not modelled, only 80 to 99");
  return std::move(machine_);
}

}  // namespace

bool is_nccl_topology_text(std::string_view text) {
  return text.find("<system") != std::string_view::npos &&
         text.find("<graphs") == std::string_view::npos;
}

std::shared_ptr<const NcclMachine> parse_nccl_topology(std::string_view text,
                                                       const std::string& file) {
  return std::make_shared<const NcclMachine>(MachineReader(file).read(text));
}

}  // namespace ghostrank
