// Traces made by hand, and the programs made from them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "profiles/load/program_text.h"
#include "profiles/trace/readers/import.h"
#include "profiles/trace/replay.h"
#include "tests/profiles/support.h"

namespace ghostrank::test {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out += static_cast<char>((value & 127) | 128);
  return out + static_cast<char>(value);
}
inline std::string field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}
inline std::string field(int number, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
inline std::string message(const std::string& bytes) { return varint(bytes.size()) + bytes; }

// A node of Chakra: type by number, dependencies on data, attributes as int64, `group` as pg_name.
struct ChakraText {
  std::uint64_t id = 0;
  int type = 4;
  std::uint64_t micros = 0;
  std::vector<std::uint64_t> deps{};
  std::vector<std::pair<std::string, std::uint64_t>> attributes{};
  std::string group{};
  bool host = false;
  std::vector<std::uint64_t> control{};
  std::string types{};  // of its inputs
  std::vector<bool> dimensions{};

  std::string text() const {
    std::string out = field(1, id) + field(2, "n" + std::to_string(id)) +
                      field(3, static_cast<std::uint64_t>(type));
    std::string packed;
    for (const std::uint64_t dep : deps) packed += varint(dep);
    if (!deps.empty()) out += field(5, packed);
    for (const std::uint64_t one : control) out += field(4, one);
    if (micros > 0) out += field(7, micros);
    if (!types.empty()) out += field(8, field(3, types));
    for (const auto& [name, value] : attributes) out += field(10, field(1, name) + field(9, value));
    if (!group.empty()) out += field(10, field(1, std::string("pg_name")) + field(29, group));
    std::string involved;
    for (const bool one : dimensions) involved += static_cast<char>(one);
    if (!dimensions.empty())
      out += field(10, field(1, std::string("involved_dim")) + field(28, field(1, involved)));
    out += field(10, field(1, std::string("is_cpu_op")) + field(27, host ? 1 : 0));
    return message(out);
  }
};
inline ChakraText all_reduce(std::uint64_t id, std::uint64_t bytes, std::vector<std::uint64_t> deps,
                             std::string group = "") {
  return {id, 7, 0, std::move(deps), {{"comm_type", 0}, {"comm_size", bytes}}, std::move(group)};
}
inline ChakraText compute(std::uint64_t id, std::uint64_t micros, std::vector<std::uint64_t> deps) {
  return {id, 4, micros, std::move(deps)};
}
inline ChakraText send(std::uint64_t id, std::uint64_t from, std::uint64_t to, std::uint64_t tag,
                       std::vector<std::uint64_t> deps) {
  return {id,
          5,
          0,
          std::move(deps),
          {{"comm_src", from}, {"comm_dst", to}, {"comm_size", 64}, {"comm_tag", tag}}};
}
inline ChakraText receive(std::uint64_t id, std::uint64_t from, std::uint64_t to, std::uint64_t tag,
                          std::vector<std::uint64_t> deps) {
  ChakraText out = send(id, from, to, tag, std::move(deps));
  out.type = 6;
  return out;
}
inline std::string chakra(const std::vector<ChakraText>& nodes) {
  std::string out = message(field(1, std::string("0.0.4")));
  for (const ChakraText& node : nodes) out += node.text();
  return out;
}

// The program of a rank as text, stream by stream: "compute: ..." and so on.
inline std::string program_of(const Workload& workload, int rank, std::size_t step = 0) {
  const Program& program = workload.roles[workload.role_of[WorldRank(rank)]].iterations.at(step);
  std::string out;
  for (std::size_t s = 0; s < program.streams.size(); ++s)
    out += program.stream_names[s] + ":\n" + text_of_ops(program, s, workload.group_names);
  return out;
}

// The text of the Error that `action` throws, without the folder's path.
inline std::string error_in(const Folder& folder, const std::function<void()>& action) {
  std::string error = error_of(action);
  const std::string prefix = folder.path("");
  for (auto at = error.find(prefix); at != std::string::npos; at = error.find(prefix))
    error.erase(at, prefix.size());
  return error;
}

inline Replay played(const std::vector<std::string>& files, int ranks = 0,
                     const std::string& format = "") {
  return replay(import_trace(files, format, ranks), {ranks, {}});
}

}  // namespace ghostrank::test
