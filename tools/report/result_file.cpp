// Reads result files back, and reads and writes the CSV of NIC pairs (see result_json.h). A result
// file may have been edited or made by another version, so the reader checks the type of every key.
// A key that is not there reads as null; only `traffic` must be there.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "profiles/error.h"
#include "profiles/input/files_read.h"
#include "tools/report/files/output_files.h"
#include "tools/report/json/field.h"
#include "tools/report/result_json.h"
#include "tools/text/statistics.h"

namespace ghostrank {
namespace {

constexpr std::string_view kPairsHeader = "src,dst,bytes,messages";
constexpr char kSchema[] = "ghostrank/result/1", kRemedy[] = "give a result file of 'run --json'";

std::optional<double> median_over(const Field& iterations, const std::string& key) {
  std::vector<double> samples;
  for (const Field& iteration : iterations.items()) {
    if (const auto value = iteration[key].number()) samples.push_back(*value);
  }
  return summarize(samples).median;
}

// Where the CSV is that a result names as its run's command line did. Beside the result first: that
// name counts from the run's working directory, where another run's file may be by now.
std::string pairs_path(const std::string& result, const std::filesystem::path& named) {
  const std::filesystem::path folder = std::filesystem::path(result).parent_path();
  for (const std::filesystem::path& path : {folder / named.filename(), folder / named})
    if (access(path.c_str(), R_OK) == 0) return path;
  return named;
}

void read_pairs_csv(StoredResult& result, const std::string& named) {
  const std::string path = pairs_path(result.file, named);
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return;  // a device may never end
  std::ifstream in(path);
  if (!in) return;  // the result was moved without its CSV; the rest is still worth comparing
  note_read(path);
  std::string line;
  std::getline(in, line);
  if (line != kPairsHeader) return;  // a ledger that outgrew memory: partial sums of another form
  for (int number = 2; std::getline(in, line); ++number) {
    std::istringstream fields(line);
    std::string source, target, bytes, messages;
    std::getline(fields, source, ',');
    std::getline(fields, target, ',');
    std::getline(fields, bytes, ',');
    std::getline(fields, messages, ',');
    try {
      result.pairs[{source, target}] = {std::stod(bytes), std::stod(messages)};
    } catch (const std::logic_error&) {
      throw Error(path + ":" + std::to_string(number) + ": not " + std::string(kPairsHeader));
    }
  }
  result.pairs_known = true;
}

void read_traffic(StoredResult& result, const Field& traffic) {
  if (traffic.missing()) traffic.fail(std::string("is missing; ") + kRemedy);
  result.wire_bytes = traffic["wire_bytes_per_iteration"].number().value_or(0);
  result.messages = traffic["messages_per_iteration"].number().value_or(0);
  for (const Field& pair : traffic["pairs"].items()) {
    result.pairs[{pair["src"].text(), pair["dst"].text()}] = {
        pair["bytes"].number().value_or(0), pair["messages"].number().value_or(0)};
  }
  result.pairs_known = !traffic["pairs"].missing();
  if (const std::string file = traffic["pairs_file"].text(); !file.empty()) {
    read_pairs_csv(result, file);
  }
}

}  // namespace

SortedJson read_result_json(const std::string& file) {
  SortedJson json = read_json(file, kRemedy);
  if (const std::string schema = Field(json, file)["schema"].text(); schema != kSchema)
    throw Error(file + ": schema is '" + schema + "', not '" + kSchema + "'; " + kRemedy);
  return json;
}

StoredResult read_result(const std::string& file) {
  return stored_result(read_result_json(file), file);
}

StoredResult stored_result(const SortedJson& json, const std::string& file) {
  const Field root(json, file);
  StoredResult result;
  result.file = file;
  result.version = root["version"].text();
  result.job = root["job"].text();
  result.fabric = root["config"]["fabric"]["kind"].text();
  const std::vector<Field> hosts = root["hosts"].items();
  result.processes = static_cast<int>(hosts.size());
  if (!hosts.empty()) {
    result.provider = hosts.front()["provider"].text();
    result.transport = hosts.front()["transport"].text();
  }
  result.ranks = root["ranks"].small();
  result.dilation = root["dilation"].number().value_or(0);
  result.wall_seconds = root["wall_seconds"].number().value_or(0);
  result.step_median = root["step_time"]["median"].number();
  const Field iterations = root["iterations"];
  result.compute = median_over(iterations, "compute_seconds");
  result.exposed = median_over(iterations, "exposed_comm_seconds");
  result.bubble = median_over(iterations, "bubble_seconds");
  for (const Field& call : root["collectives"].items())
    result.collectives.push_back({call["op"].text(), call["group"].text(), call["algorithm"].text(),
                                  call["calls"].number().value_or(0),
                                  call["bytes"].number().value_or(0)});
  read_traffic(result, root["traffic"]);
  result.faithful = root["fidelity"]["faithful"].truth();
  result.modelled = root["fidelity"]["modelled"].truth();
  result.reason = root["fidelity"]["reason"].text();
  result.interrupted = root["interrupted"].text();
  return result;
}

std::string pairs_csv(const std::vector<PairTraffic>& pairs, int nics_per_node) {
  std::string text = std::string(kPairsHeader) + "\n";
  char row[96];
  for (const PairTraffic& p : pairs) {
    std::snprintf(row, sizeof row, ",%.17g,%.17g\n", p.bytes, p.messages);
    text +=
        nic_name(p.source_nic, nics_per_node) + "," + nic_name(p.target_nic, nics_per_node) + row;
  }
  return text;
}

void write_pairs_csv(const std::string& path, const Result& result) {
  write_whole(path, pairs_csv(result.pairs, result.nics_per_node));
}

}  // namespace ghostrank
