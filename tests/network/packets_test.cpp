// Packets of schemes between hosts that are network namespaces: over slow links, over links with
// too small an MTU, and between the nodes of one process.
#include <csignal>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/network/namespaces.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::kHosts;
using testing::Lab;
using testing::read_file;
using Namespaces = testing::Namespaces;

// Sums of 20,000 elements at a server beside the ranks of node 0, verified. Ranks retransmit
// packets that were not answered for 0.5 s of wall time.
std::string packets_job(const Lab& lab, const std::string& settings) {
  return lab.write_job(std::string("model: {kind: layers, name: one, dtype: float32, layers: "
                                   "[{name: a, parameters: [20000]}]}\n"
                                   "collectives: {plugins: [") +
                       GHOSTRANK_AGENTS_PLUGIN +
                       "], allreduce: test/with-words}\n"
                       "servers: {count: 1, placement: colocated}\n"
                       "scale: {dilation: 2}\n"
                       "run: {iterations: 3, warmup: 0, probe_ms: 0, verify: true}\n") +
         " --allow-unfaithful --json " + lab.file("result.json") + settings;
}

std::vector<pid_t> start_hosts(Lab& lab, const std::string& arguments) {
  std::vector<pid_t> hosts;
  for (int h = 0; h < kHosts; ++h) hosts.push_back(lab.start_host(h, kHosts, arguments));
  return hosts;
}

// 79 packets from each of six ranks to the server, and as many back to each, in every iteration.
void expect_summed_without_loss(const Lab& lab) {
  const json result = json::parse(read_file(lab.file("result.json")));
  EXPECT_GE(result["verify"]["checked_elements"], 3 * 8 * 20'000);
  EXPECT_EQ(result["verify"]["wrong_elements"], 0);
  const json& packets = result["packets"];
  EXPECT_EQ(packets["sent"], 3 * 2 * 6 * 79);
  EXPECT_EQ(packets["received"], packets["sent"]);
  for (const char* none : {"lost_on_purpose", "dropped", "refused", "strays"})
    EXPECT_EQ(packets[none], 0) << none;
}

// A rank hands over all its packets at once, more than a socket's buffer holds: they must wait, and
// none may be lost.
TEST_F(Namespaces, PacketsWaitForALinkThatIsSlowerThanTheirSender) {
  lab->shape({50e6, 65536});
  for (const pid_t pid :
       start_hosts(*lab, packets_job(*lab, " -s fabric.packets.mtu=1500 -s cluster.nic.rate=0")))
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 0) << lab->output(0);
  expect_summed_without_loss(*lab);
}

TEST_F(Namespaces, PacketsLargerThanTheInterfacesCarryAreNamedBeforeTheStart) {
  for (const pid_t pid : start_hosts(*lab, packets_job(*lab, " -s fabric.packets.mtu=1501")))
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 3);
  for (const std::string part :
       {"none of 1501 bytes (fabric.packets.mtu) gets from host", "10.77.0.",
        "the sender's kernel says: Message too long", "while small ones do"})
    EXPECT_NE(lab->output(0).find(part), std::string::npos) << lab->output(0);
}

TEST_F(Namespaces, OneProcessSendsPacketsBetweenItsNodesThroughTheirInterfaces) {
  const std::uint64_t before = lab->sent_by(3);
  const std::string arguments =
      packets_job(*lab,
                  " -s fabric.packets.mtu=1500 -s fabric.colocated=wire -s run.shards=2 "
                  "-s fabric.namespaces='" +
                      lab->pattern() + "'");
  const pid_t pid = lab->start(std::string(GHOSTRANK_BINARY) + " run " + arguments, "host0");
  EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 0) << lab->output(0);
  expect_summed_without_loss(*lab);
  EXPECT_GT(lab->sent_by(3) - before, 3u * 2u * 80'000u);  // of two ranks
}

}  // namespace
}  // namespace ghostrank
