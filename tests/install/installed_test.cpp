// An installation in its own folder: a user's algorithms are built against it, out of tree and
// offline, and the installed command loads, proves, plays and verifies them.
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/shell.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;
using test::Outcome;

// Runs the command with no environment variable of the caller but PATH.
Outcome shell(const std::string& command) {
  return test::shell("env -i PATH=\"$PATH\" " + command);
}

class Installed : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = fs::temp_directory_path() / ("ghostrank-install-" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    const Outcome ended =
        shell(GHOSTRANK_CMAKE " --install " GHOSTRANK_BUILD_DIR " --prefix " + prefix().string());
    ASSERT_EQ(ended.status, 0) << ended.text;
  }
  static void build_examples() {
    const fs::path source = prefix() / "share/ghostrank/examples";
    const Outcome configured = shell(
        GHOSTRANK_CMAKE " -G Ninja -S " + source.string() + " -B " + examples().string() +
        " -DCMAKE_PREFIX_PATH=" + prefix().string() + " -DCMAKE_CXX_COMPILER=" GHOSTRANK_COMPILER);
    ASSERT_EQ(configured.status, 0) << configured.text;
    const Outcome built = shell(GHOSTRANK_CMAKE " --build " + examples().string());
    ASSERT_EQ(built.status, 0) << built.text;
  }
  // Plays a small job with these lines and verification, and expects the text `expected` in its
  // JSON report, behind the job, which the report contains.
  static void play(const std::string& lines, const std::string& expected,
                   const std::string& in_cluster = "") {
    const fs::path job = root_ / "job.yaml";
    std::ofstream(job) << "schema: ghostrank/job/1\n"
                          "model:\n"
                          "  kind: layers\n"
                          "  name: small\n"
                          "  dtype: float32\n"
                          "  layers: [{name: only, parameters: [5000], forward_us: 10, "
                          "backward_us: 10}]\n"
                          "cluster: {nodes: 3, gpus_per_node: 2, nics_per_node: 1"
                       << in_cluster
                       << "}\n"
                          "run: {verify: true, iterations: 1}\n"
                       << lines;
    const Outcome played =
        shell(command() + " run " + job.string() + " --allow-unfaithful --json -");
    EXPECT_EQ(played.status, 0) << played.text;
    const std::size_t results = played.text.find("\n  \"wall_seconds\": ");
    EXPECT_NE(played.text.find(expected, results), std::string::npos) << played.text;
    EXPECT_NE(played.text.find("\"wrong_elements\": 0"), std::string::npos) << played.text;
    EXPECT_EQ(played.text.find("\"checked_elements\": 0"), std::string::npos) << played.text;
    EXPECT_EQ(played.text.find("\"nonzero_bytes\": 0,"), std::string::npos) << played.text;
  }
  // Compares two settings of a job whose 8 nodes, 4 on each leaf, exchange 8 MB across 4 spines;
  // their step times must keep to `expected`, such as b/a<0.6.
  static void compare(const std::string& plugin, const std::string& lines, const std::string& a,
                      const std::string& b, const std::string& expected) {
    const fs::path job = root_ / "compare.yaml";
    std::ofstream(job) << "schema: ghostrank/job/1\n"
                          "model: {kind: layers, name: small, layers: [{name: only, parameters: "
                          "[100], forward_us: 10, backward_us: 10}]}\n"
                          "cluster: {nodes: 8, gpus_per_node: 1, nics_per_node: 1, nic: {rate: "
                          "100Gbps}, topology: {kind: leaf_spine, leaves: 2, spines: 4}}\n"
                          "background: [{pattern: bisection, bytes: 8000000, chunk: 1000000}]\n"
                          "run: {warmup: 0, iterations: 1}\n"
                       << "collectives: {plugins: [example/" << plugin << "]}\n"
                       << lines;
    const Outcome compared = shell(command() + " compare " + job.string() + " --a " + a + " --b " +
                                   b + " --expect '" + expected + "'");
    EXPECT_EQ(compared.status, 0) << compared.text;
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  static fs::path prefix() { return root_ / "prefix"; }
  static fs::path examples() { return root_ / "example"; }
  static std::string command() { return (prefix() / "bin/ghostrank").string(); }
  static fs::path root_;
};
fs::path Installed::root_;

TEST_F(Installed, CommandFindsTheProfilesBesideIt) {
  const fs::path jobs = prefix() / "share/ghostrank/profiles/jobs";
  fs::copy_file(jobs / "verify-small.yaml", jobs / "only-here.yaml");
  const Outcome planned = shell(command() + " plan only-here");
  EXPECT_EQ(planned.status, 0) << planned.text;
}

TEST_F(Installed, ManPagesAndCompletionAreWhereTheyAreLookedFor) {
  const auto first_line = [](const fs::path& file) {
    std::string line;
    std::ifstream in(prefix() / "share" / file);
    std::getline(in, line);
    return line;
  };
  EXPECT_EQ(first_line("man/man1/ghostrank.1").substr(0, 13), ".TH GHOSTRANK");
  EXPECT_EQ(first_line("man/man1/ghostrank-profile-show.1").substr(0, 13), ".TH GHOSTRANK");
  EXPECT_EQ(first_line("bash-completion/completions/ghostrank"),
            "# Completion of ghostrank for bash; made by 'ghostrank help --completion bash'.");
  EXPECT_EQ(first_line("zsh/site-functions/_ghostrank"), "#compdef ghostrank");
  EXPECT_EQ(first_line("fish/vendor_completions.d/ghostrank.fish"),
            "# Completion of ghostrank for fish; made by 'ghostrank help --completion fish'.");
}

TEST_F(Installed, HeadersBuildTheExamplesThatTheCommandLoadsProvesAndPlays) {
  build_examples();
  if (HasFatalFailure()) return;
  const std::string ring = (examples() / "two_way_ring.so").string();
  const Outcome proved = shell(command() + " schedule allreduce --plugin " + ring +
                               " --library mine --ranks 6 --count 1000 --check");
  EXPECT_EQ(proved.status, 0) << proved.text;
  EXPECT_NE(proved.text.find("every rank ends with every contribution once"), std::string::npos)
      << proved.text;
  play(
      "collectives: {plugins: [example/two_way_ring.so], library: mine}\n"
      "scale: {dilation: 50}\n",
      "\"algorithm\": \"two-way-ring\"");

  // Loading the plug-in proves it.
  const std::string server = (examples() / "packet_server.so").string();
  const Outcome shown = shell(command() + " schemes --library mine --plugin " + server);
  EXPECT_EQ(shown.status, 0) << shown.text;
  EXPECT_NE(shown.text.find("loss duplicates delay reordering"), std::string::npos) << shown.text;
  play(
      "collectives: {plugins: [example/packet_server.so], allreduce: mine/packet-server}\n"
      "servers: {count: 1}\n"
      "fabric: {kind: virtual, packets: {loss: 0.05}}\n",
      "\"algorithm\": \"packet-server\"");
  play(
      "collectives: {plugins: [example/source_routing.so]}\n"
      "fabric: {kind: virtual}\n",
      "\"routing\": \"by-source\"",
      ", topology: {kind: leaf_spine, leaves: 3, spines: 2, routing: by-source}");
  play(
      "collectives: {plugins: [example/delay_target.so]}\n"
      "fabric: {kind: virtual, network: packet, queues: {congestion_control: delay-target}}\n",
      "\"model\": \"packet\"");
  // The user's routing gives every NIC a spine of its own; ECMP's hashes collide.
  for (const char* network : {"loggp", "flow", "packet"})
    compare("source_routing.so", "fabric: {kind: virtual, network: " + std::string(network) + "}\n",
            "cluster.topology.routing=ecmp", "cluster.topology.routing=by-source", "b/a<0.6");
  compare("delay_target.so", "fabric: {kind: virtual, network: packet}\n",
          "fabric.queues.congestion_control=dcqcn", "fabric.queues.congestion_control=delay-target",
          "b/a<0.8");
  play(
      "collectives: {plugins: [example/packet_server.so, example/near_servers.so], "
      "allreduce: mine/packet-server}\n"
      "servers: {count: 1, placement: near}\n"
      "fabric: {kind: virtual}\n",
      "\"name\": \"n0\"");  // of the node with the server; one of its own would be n3

  play(
      "collectives: {plugins: [example/sparse_server.so], allreduce: mine/sparse-server}\n"
      "servers: {count: 1}\n"
      "tensors: {density: 0.25, block: 256}\n"
      "fabric: {kind: virtual}\n",
      "\"nonzero_bytes\": ");
  play(
      "collectives: {plugins: [example/eight_bits.so]}\n"
      "compression: {method: eight-bits}\n"
      "fabric: {kind: virtual}\n",
      "\"payload_bytes_per_rank\": 5004");
  const Outcome slots = shell(command() + " schemes --library mine --plugin " +
                              (examples() / "slot_max.so").string());
  EXPECT_EQ(slots.status, 0) << slots.text;
  EXPECT_NE(slots.text.find("wire format of their own: slot-max"), std::string::npos) << slots.text;
}

}  // namespace
}  // namespace ghostrank
