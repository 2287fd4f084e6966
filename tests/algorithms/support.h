// MSCCL files written by hand, and the messages of a schedule.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "collectives/exchange/msccl.h"
#include "profiles/algorithms/msccl_file.h"

namespace ghostrank::testing {

inline std::string step_xml(int s, const std::string& type, const std::string& source,
                            const std::string& destination, int count = 1, int depid = -1,
                            int deps = -1) {
  const auto place = [](const char* which, const std::string& at) {
    return std::string(which) + "buf=\"" + at.substr(0, 1) + "\" " + which + "off=\"" +
           at.substr(1) + "\" ";
  };
  return "      <step s=\"" + std::to_string(s) + "\" type=\"" + type + "\" " +
         place("src", source) + place("dst", destination) + "cnt=\"" + std::to_string(count) +
         "\" depid=\"" + std::to_string(depid) + "\" deps=\"" + std::to_string(deps) +
         "\" hasdep=\"0\"/>\n";
}

inline std::string tb_xml(int id, int send, int recv, const std::string& steps) {
  return "    <tb id=\"" + std::to_string(id) + "\" send=\"" + std::to_string(send) + "\" recv=\"" +
         std::to_string(recv) + "\" chan=\"0\">\n" + steps + "    </tb>\n";
}

inline std::string gpu_xml(int id, int input, int output, int scratch, const std::string& tbs) {
  return "  <gpu id=\"" + std::to_string(id) + "\" i_chunks=\"" + std::to_string(input) +
         "\" o_chunks=\"" + std::to_string(output) + "\" s_chunks=\"" + std::to_string(scratch) +
         "\">\n" + tbs + "  </gpu>\n";
}

inline std::string algo_xml(const std::string& coll, int ranks, int chunks, bool in_place,
                            const std::string& gpus) {
  return "<algo name=\"by-hand\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"" +
         std::to_string(chunks) + "\" ngpus=\"" + std::to_string(ranks) + "\" coll=\"" + coll +
         "\" inplace=\"" + (in_place ? "1" : "0") + "\">\n" + gpus + "</algo>\n";
}

// All-reduce of n ranks: every rank sends its chunk j to the scratch of rank j. Threadblock 0 of
// rank j adds these chunks to the result; then each threadblock sends the sum to its own peer.
inline std::string all_pairs_xml(int n, bool in_place) {
  const std::string result = in_place ? "i" : "o";
  std::string gpus;
  for (int r = 0; r < n; ++r) {
    const std::string own = std::to_string(r);
    std::string tbs;
    const int adds_at = in_place ? 2 : 3;  // step of the first addition in threadblock 0
    for (int t = 0; t < n - 1; ++t) {
      const int peer = t < r ? t : t + 1;
      const std::string from = std::to_string(peer);
      std::string steps =
          step_xml(0, "s", "i" + from, "s" + own) + step_xml(1, "r", "i" + own, "s" + from);
      int k = 2;
      if (t == 0) {
        if (!in_place) steps += step_xml(k++, "cpy", "i" + own, "o" + own);
        for (int u = 0; u < n - 1; ++u) {
          const std::string part = "s" + std::to_string(u < r ? u : u + 1);
          steps += step_xml(k++, "re", part, result + own, 1, u > 0 ? u : -1, u > 0 ? 1 : -1);
        }
      } else {
        steps += step_xml(k++, "nop", "i0", "i0", 0, 0, adds_at + n - 2);
      }
      steps += step_xml(k, "s", result + own, result + own);
      steps += step_xml(k + 1, "r", result + from, result + from);
      tbs += tb_xml(t, peer, peer, steps);
    }
    gpus += gpu_xml(r, n, n, n, tbs);
  }
  return algo_xml("allreduce", n, n, in_place, gpus);
}

// All-reduce of n >= 3 ranks by fused steps, along a chain and around again: 1 threadblock a rank.
inline std::string fused_ring_xml(int n, int chunks) {
  std::string gpus;
  for (int r = 0; r < n; ++r) {
    std::string steps;
    if (r == 0)
      steps = step_xml(0, "s", "i0", "i0", chunks) + step_xml(1, "rcs", "i0", "i0", chunks);
    else if (r == n - 1)
      steps = step_xml(0, "rrcs", "i0", "i0", chunks);
    else
      steps = step_xml(0, "rrs", "i0", "i0", chunks) +
              step_xml(1, r == n - 2 ? "r" : "rcs", "i0", "i0", chunks);
    gpus += gpu_xml(r, chunks, chunks, 0, tb_xml(0, (r + 1) % n, (r + n - 1) % n, steps));
  }
  return algo_xml("allreduce", n, chunks, true, gpus);
}

inline std::shared_ptr<const MscclAlgorithm> parsed(const std::string& xml) {
  return std::make_shared<const MscclAlgorithm>(parse_msccl(xml, "test.xml"));
}

// The bytes of all messages, in order, by channel, source and destination.
using Messages = std::map<std::tuple<int, GroupRank, GroupRank>, std::vector<std::uint64_t>>;
inline Messages messages_of(const Schedule& schedule) {
  Messages out;
  for (GroupRank r = 0; r < schedule.collective().size; ++r)
    for (int a = 0; a < schedule.actors(r); ++a) {
      const Actor actor = schedule.actor(r, a);
      for (int k = 0; k < actor.steps; ++k) {
        const Step step = schedule.step(r, a, k);
        for (std::uint32_t s = 0; s < step.slices; ++s)
          for (const GroupRank peer : step.send_to)
            out[{actor.channel, r, peer}].push_back(
                message_bytes(schedule.protocol(), slice_of(step.send, step, s).count,
                              schedule.collective().element_bytes));
      }
    }
  return out;
}

// A file in its own folder; the destructor removes both.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text) : name_(name) {
    static std::atomic<int> number = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("ghostrank-" + std::to_string(getpid()) + "-" + std::to_string(number++));
    std::filesystem::create_directories(folder_);
    std::ofstream(path()) << text;
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string folder() const { return folder_.string(); }
  std::string path() const { return (folder_ / name_).string(); }

 private:
  std::string name_;
  std::filesystem::path folder_;
};

}  // namespace ghostrank::testing
