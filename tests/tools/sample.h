// A small result for the tests of its formats; a temporary folder; reading and writing of files.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <stdlib.h>
#include <string>

#include "emulator/result/result.h"
#include "profiles/workload/program.h"

namespace ghostrank::test {

inline Result sample() {
  Result r;
  r.version = "9.8.7";
  r.build = {"1a2b3c4d5e6f", "GNU 12.2.0", "Release"};
  r.argv = {"ghostrank", "run", "job.yaml"};
  r.config_json = R"({"model": "tiny", "fabric": {"kind": "ofi"}})";
  r.job_name = "job";
  r.started_utc = "2024-01-02T03:04:05Z";
  r.hosts = {{Host(0), "alpha", "net", "tcp-cubic", 2, 1000, 1.5},
             {Host(1), "beta", "net", "tcp-cubic", 2, 2000, 2.5, "s2", "0-3", true, "", "Fast 9000",
              "Linux 6.1 x86_64", "1.17"}};
  r.ranks = 4;
  r.nics_per_node = 2;
  r.dilation = 8;
  r.wall_seconds = 12.5;
  r.iterations = {{0.4, 0.3, 0.1, 0}, {0.6, 0.3, 0.2, 0.1}, {0.5, 0.3, 0.2, 0}};
  constexpr Exactness kExactness{Exactness::Level::messages, Exactness::Basis::derived};
  r.collectives = {
      {"allreduce", "dp", "ring", kExactness, 3, 3072, 0.002, {0.0019, 0.0021}, 0, 1.5, 2.25}};
  r.wire_bytes_per_iteration = 4096;
  r.messages_per_iteration = 12;
  r.intra_node_bytes_per_iteration = 1024.5;
  r.intra_node_messages_per_iteration = 4;
  r.nics = {{Nic(0), 2048, 2048, 6, 6}, {Nic(3), 2048, 2048, 6, 6}};
  r.pairs = {{Nic(0), Nic(3), 2048, 6}, {Nic(3), Nic(0), 2048, 6}};
  r.interfaces = {{Host(0), "", "eth0", 5000, 6000}, {Host(1), "gr1", "eth1", {}, {}}};
  r.fidelity.faithful = true;
  r.fidelity.valid_for = {"bytes", "order"};
  r.fidelity.lateness_us_p50 = 10;
  r.fidelity.critical_lateness = 0.004;
  r.fidelity.run_queue_wait = -1;
  r.verify = VerifyReport{1000, 0};
  r.samples_per_iteration = 16;
  r.flops_per_iteration = 4e12;
  r.peak_flops = 8e12;
  return r;
}

// A directory that the destructor removes.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "ghostrank-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error(name + " cannot be made");
    path_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace ghostrank::test
