// NCCL's topology files: the node read from them, and the errors for wrong ones. The files are
// written here in the documented form.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/machine/search.h"
#include "collectives/nccl/machine/templates.h"
#include "profiles/error.h"
#include "profiles/load/files/nccl_topology.h"
#include "profiles/load/load.h"
#include "tests/profiles/load/texts.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::replaced;

std::string busid(int n) {
  const std::string digits = std::to_string(n);
  return "0000:" + std::string(digits.size() < 2 ? "0" : "") + digits + ":00.0";
}

std::string pci(int bus, const std::string& kind, const std::string& speed,
                const std::string& inside) {
  return "<pci busid=\"" + busid(bus) + "\" class=\"" + kind + "\" link_speed=\"" + speed +
         "\" link_width=\"16\">" + inside + "</pci>\n";
}

struct Shape {
  int bridges, gpus, nics, sm, nvlinks, mbps;
  std::string speed, vendor = "GenuineIntel";
};
const Shape kDgxA100{4, 8, 8, 80, 12, 200000, "16.0 GT/s PCIe"};
const Shape kHgxH100{8, 8, 8, 90, 18, 400000, "32.0 GT/s PCIe"};
const Shape kFourNics{4, 8, 4, 90, 18, 400000, "32.0 GT/s PCIe"};

// Each of two CPUs has half of the PCIe switches; the switches share GPUs and NICs equally.
std::string file_of(const Shape& s) {
  std::string text = "<system version=\"1\">\n";
  int gpu = 0, nic = 0, bus = 10;
  for (int cpu = 0; cpu < 2; ++cpu) {
    text += "<cpu numaid=\"" + std::to_string(cpu) +
            "\" affinity=\"ff\" arch=\"x86_64\" vendor=\"" + s.vendor +
            "\" familyid=\"6\" modelid=\"143\">\n";
    for (int b = 0; b < s.bridges / 2; ++b) {
      std::string inside;
      for (int i = 0; i < s.gpus / s.bridges; ++i, ++gpu)
        inside += pci(bus++, "0x030200", s.speed,
                      "<gpu dev=\"" + std::to_string(gpu) + "\" sm=\"" + std::to_string(s.sm) +
                          "\" rank=\"" + std::to_string(gpu) +
                          "\" gdr=\"1\"><nvlink target=\"ffff:ff:ff.f\" count=\"" +
                          std::to_string(s.nvlinks) + "\" tclass=\"0x068000\"/></gpu>");
      for (int i = 0; i < s.nics / s.bridges; ++i, ++nic)
        inside +=
            pci(bus++, "0x020700", s.speed,
                "<nic><net name=\"mlx5_" + std::to_string(nic) + "\" dev=\"" + std::to_string(nic) +
                    "\" speed=\"" + std::to_string(s.mbps) + "\" port=\"1\" guid=\"0x" +
                    std::to_string(100 + nic) + "\" maxconn=\"131072\" gdr=\"1\"/></nic>");
      text += pci(bus++, "0x060400", s.speed, inside);
    }
    text += "</cpu>\n";
  }
  return text + "</system>\n";
}

void expect_same_graphs(const NcclMachine& a, const NcclMachine& b, const std::vector<int>& gpus) {
  const auto x = nccl_search(a, gpus, {}), y = nccl_search(b, gpus, {});
  EXPECT_EQ(x->ring, y->ring);
  EXPECT_EQ(x->tree, y->tree);
  EXPECT_EQ(x->nvls, y->nvls);
  EXPECT_EQ(x->heads, y->heads);
}

TEST(NcclTopologyFile, OfATemplatesNodeLeadsToItsGraphs) {
  const std::vector<std::pair<Shape, const char*>> nodes{
      {kDgxA100, "dgx-a100"}, {kHgxH100, "hgx-h100-400g"}, {kFourNics, "hgx-h100-4nic"}};
  for (const auto& [shape, name] : nodes)
    for (const std::vector<int>& gpus :
         {std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1}, {1, 2}, {5}}) {
      SCOPED_TRACE(name);
      expect_same_graphs(*parse_nccl_topology(file_of(shape), "topo.xml"), nccl_template(name),
                         gpus);
    }
}

TEST(NcclTopologyFile, SaysWhatIsInTheNode) {
  Shape amd = kDgxA100;
  amd.vendor = "AuthenticAMD";
  const auto machine = parse_nccl_topology(file_of(amd), "topo.xml");
  EXPECT_EQ(machine->vendor, NcclCpu::amd);
  EXPECT_EQ(machine->compute_capability, 80);
  EXPECT_EQ(machine->cpus.size(), 2U);
  EXPECT_EQ(machine->cpus[0].GBps, 16);
  EXPECT_EQ(machine->bridges.size(), 4U);
  EXPECT_EQ(machine->gpus[3].up.bridge, 1);
  EXPECT_EQ(machine->gpus[3].up.GBps, 24);
  EXPECT_EQ(machine->gpus[3].switch_links, 12);
  EXPECT_EQ(machine->nics[7].up.bridge, 3);
  EXPECT_EQ(machine->nics[7].GBps, 25);
  EXPECT_TRUE(machine->nics[7].rdma);
}

TEST(NcclTopologyFile, TakesWholeGuidsAndEmptyWidthsAsNcclWritesThem) {
  std::string text = replaced(file_of(kHgxH100), "guid=\"0x100\"", "guid=\"0xa0ce7c0003966b94\"");
  text = replaced(text, "link_width=\"16\"", "link_width=\"\"");
  const auto machine = parse_nccl_topology(text, "topo.xml");
  EXPECT_EQ(machine->nics[0].asic, 0xa0ce7c0003966b94);
  EXPECT_EQ(machine->bridges[0].GBps, machine->bridges[1].GBps) << "16 lanes";
  EXPECT_GT(machine->bridges[0].GBps, 0);
}

// Two GPUs joined by NVLink bridges, without a switch.
TEST(NcclTopologyFile, KnowsNvlinksFromGpuToGpu) {
  std::string text = file_of({2, 2, 2, 80, 4, 100000, "16.0 GT/s PCIe"});
  text = replaced(text, "target=\"ffff:ff:ff.f\" count=\"4\" tclass=\"0x068000\"",
                  "target=\"" + busid(13) + "\" count=\"4\" tclass=\"0x030200\"");
  text = replaced(text, "target=\"ffff:ff:ff.f\" count=\"4\" tclass=\"0x068000\"",
                  "target=\"" + busid(10) + "\" count=\"4\" tclass=\"0x030200\"");
  const auto machine = parse_nccl_topology(text, "topo.xml");
  EXPECT_EQ(machine->gpus[0].switch_links, 0);
  EXPECT_EQ(machine->gpus[0].peer_links, (std::vector<std::pair<int, int>>{{1, 4}}));
  const std::vector<int> both{0, 1};
  const auto graphs = nccl_search(*machine, both, {});
  EXPECT_TRUE(graphs->ring.links.nvlink);
  EXPECT_EQ(graphs->nvls.channels, 0);
}

std::string topology_error(const std::string& text) {
  try {
    parse_nccl_topology(text, "topo.xml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NcclTopologyFile, IsRefusedWhereItIsWrong) {
  const std::string good = file_of(kHgxH100);
  EXPECT_EQ(topology_error(good), "");
  EXPECT_NE(topology_error("<system").find("topo.xml:"), std::string::npos);
  EXPECT_NE(topology_error("<graphs version=\"1\"/>").find("not <system>"), std::string::npos);
  EXPECT_NE(topology_error("<system version=\"1\"/>").find("there is no GPU"), std::string::npos);
  const auto error = [&](const std::string& from, const std::string& to) {
    return topology_error(replaced(good, from, to));
  };
  EXPECT_NE(error("dev=\"0\" sm", "dev=\"9\" sm").find("not of a whole node"), std::string::npos);
  EXPECT_NE(error("dev=\"0\" sm", "dev=\"1\" sm").find("two GPUs with dev 1"), std::string::npos);
  EXPECT_NE(error("sm=\"90\"", "sm=\"x\"").find("sm is 'x'"), std::string::npos);
  EXPECT_NE(error("sm=\"90\"", "sm=\"70\"").find("sm 70 are not modelled"), std::string::npos);
  EXPECT_NE(error("guid=\"0x100\"", "guid=\"0x1a0ce7c0003966b94\"").find("guid is"),
            std::string::npos);
  EXPECT_NE(error("x86_64", "arm64").find("other than x86_64"), std::string::npos);
  EXPECT_NE(error("<nvlink", "<c2c bw=\"1\" count=\"1\"/><nvlink").find("C2C"), std::string::npos);
  EXPECT_NE(error("tclass=\"0x068000\"", "tclass=\"0x068001\"").find("to a CPU"),
            std::string::npos);
  EXPECT_NE(error("tclass=\"0x068000\"", "tclass=\"0x030200\"").find("no GPU at"),
            std::string::npos);
  EXPECT_NE(error("</system>", std::string(2 << 20, ' ') + "</system>").find("larger than 1 MiB"),
            std::string::npos);
}

TEST(NcclTopologyFile, IsANodeTemplateOfAJob) {
  const test::Folder folder;
  folder.write("topo.xml", file_of(kFourNics));
  const auto load = [&](const std::string& cluster) {
    return load_job(folder.write("job.yaml",
                                 "schema: ghostrank/job/1\nmodel: resnet50\ndevice: h100-sxm\n"
                                 "cluster: " +
                                     cluster +
                                     "\ncollectives: {library: nccl-2.28, node_template: "
                                     "topo.xml}\n"),
                    {});
  };
  const LoadedJob loaded = load("{nodes: 2, gpus_per_node: 8, nics_per_node: 4}");
  ASSERT_NE(loaded.spec.collectives.machine, nullptr);
  EXPECT_EQ(loaded.spec.collectives.machine->nic_count(), 4);
  EXPECT_EQ(loaded.spec.collectives.graphs, nullptr);
  EXPECT_NE(loaded.config_json.find("<system"), std::string::npos);  // its text, not its path
  const std::string error =
      test::error_of([&] { load("{nodes: 2, gpus_per_node: 4, nics_per_node: 4}"); });
  EXPECT_NE(error.find("a node with 8 GPUs"), std::string::npos) << error;
}

}  // namespace
}  // namespace ghostrank
