#include "tools/sweep/rows.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "profiles/error.h"
#include "profiles/median.h"
#include "tools/report/job_hash.h"
#include "tools/report/json/json.h"
#include "tools/text/csv.h"

namespace ghostrank {
namespace {

constexpr std::array kColumns{"step_time_s", "wire_bytes", "messages",     "exposed_s",
                              "compute_s",   "faithful",   "seed",         "version",
                              "config_hash", "error",      "samples_per_s"};

// Shortest text that reads back as the same number.
std::string exact(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

std::string text_of(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? "," : "") + csv_cell(cells[i]);
  return text;
}
std::string line_of(const std::vector<std::string>& cells) { return text_of(cells) + "\n"; }

std::vector<std::string> header_of(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const SweepAxis& axis : sweep.grid.axes) names.push_back(axis.key);
  names.insert(names.end(), kColumns.begin(), kColumns.end());
  return names;
}

std::vector<std::string> cells_of(const Sweep& sweep, std::size_t point) {
  const SweepRow& row = sweep.rows[point];
  std::vector<std::string> cells = sweep.grid.values(point);
  const auto figure = [&](double value) {
    cells.push_back(row.good() ? exact(value) : std::string());
  };
  for (const double value :
       {row.step_seconds, row.wire_bytes, row.messages, row.exposed_seconds, row.compute_seconds})
    figure(value);
  cells.insert(cells.end(), {row.faithful, row.seed, row.version, row.config_hash, row.error});
  cells.push_back(row.good() && row.samples_per_second ? exact(*row.samples_per_second) : "");
  return cells;
}

double number_of(const std::string& cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size())
    throw Error("'" + cell + "' is no number");
  return value;
}

// The figures of a record, behind the `keys` swept keys.
void take(SweepRow& row, const std::vector<std::string>& record, std::size_t keys) {
  const auto cell = [&](std::size_t column) { return record[keys + column]; };
  row.step_seconds = number_of(cell(0));
  row.wire_bytes = number_of(cell(1));
  row.messages = number_of(cell(2));
  row.exposed_seconds = number_of(cell(3));
  row.compute_seconds = number_of(cell(4));
  row.faithful = cell(5);
  if (!cell(10).empty()) row.samples_per_second = number_of(cell(10));
  row.played = true;
}

double median_over(const Json& iterations, const char* key) {
  std::vector<double> values;
  for (const Json& one : iterations) values.push_back(one.at(key).get<double>());
  return median(std::move(values));
}

// Empty if there is no such file.
std::string text_in(const std::string& file) {
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown)) return "";
  std::ifstream in(file, std::ios::binary);
  std::string text;
  std::array<char, 4096> block;
  while (in.read(block.data(), block.size()) || in.gcount() > 0)
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
  if (!in.is_open() || in.bad())
    throw Error(file + ": cannot be read, and its rows would be lost; name another file",
                ErrorKind::environment);
  return text;
}

}  // namespace

void read_figures(SweepRow& row, const std::string& result_file) {
  try {
    std::ifstream in(result_file);
    const Json result = Json::parse(in);
    row.step_seconds = result.at("step_time").at("median").get<double>();
    row.wire_bytes = result.at("traffic").at("wire_bytes_per_iteration").get<double>();
    row.messages = result.at("traffic").at("messages_per_iteration").get<double>();
    row.exposed_seconds = median_over(result.at("iterations"), "exposed_comm_seconds");
    row.compute_seconds = median_over(result.at("iterations"), "compute_seconds");
    const Json& samples = result.at("samples_per_second");
    if (samples.is_number()) row.samples_per_second = samples.get<double>();
    const Json& fidelity = result.at("fidelity");
    row.faithful = fidelity.at("modelled").get<bool>()   ? "modelled"
                   : fidelity.at("faithful").get<bool>() ? "true"
                                                         : "false";
    row.played = true;
    if (played_hash(result) != row.config_hash) row.error = "its run " + another_job("sweep");
  } catch (const Json::exception& error) {
    throw Error(result_file + " is no result of a run: " + error.what(), ErrorKind::environment);
  }
}

std::string sweep_csv(const Sweep& sweep) {
  std::string text = line_of(header_of(sweep));
  for (std::size_t i = 0; i < sweep.rows.size(); ++i)
    if (sweep.rows[i].played) text += line_of(cells_of(sweep, i));
  return text;
}

std::string sweep_json(const Sweep& sweep) {
  Json json{{"schema", "ghostrank/sweep/1"}, {"job", sweep.job}, {"grid", Json::object()}};
  for (const SweepAxis& axis : sweep.grid.axes) json["grid"][axis.key] = axis.values;
  json["rows"] = Json::array();
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    if (!row.played) continue;
    const auto figure = [&](double value) { return row.good() ? Json(value) : Json(nullptr); };
    Json out{{"set", Json::object()},
             {"step_time_s", figure(row.step_seconds)},
             {"wire_bytes", figure(row.wire_bytes)},
             {"messages", figure(row.messages)},
             {"exposed_s", figure(row.exposed_seconds)},
             {"compute_s", figure(row.compute_seconds)},
             {"faithful", row.faithful},
             {"seed", row.seed},
             {"version", row.version},
             {"config_hash", row.config_hash},
             {"error", row.error},
             {"samples_per_s", row.samples_per_second ? Json(*row.samples_per_second) : Json()}};
    const std::vector<std::string> values = sweep.grid.values(i);
    for (std::size_t a = 0; a < values.size(); ++a) out["set"][sweep.grid.axes[a].key] = values[a];
    json["rows"].push_back(std::move(out));
  }
  return dump(json);
}

std::size_t resume(Sweep& sweep, const std::string& csv_file) {
  const std::string text = text_in(csv_file);
  if (text.empty()) return 0;
  const std::vector<CsvRecord> records = csv_records(text);
  const std::vector<std::string> header = header_of(sweep);
  if (records.front().cells != header)
    throw Error(csv_file + " is not of this sweep: its first line should be " + text_of(header) +
                "; name another file, or remove it");
  std::map<std::vector<std::string>, std::size_t> points;  // hash, seed, version, values
  const std::size_t keys = sweep.grid.axes.size();
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    std::vector<std::string> id = sweep.grid.values(i);
    id.insert(id.end(), {row.seed, row.version, row.config_hash});
    points[id] = i;
  }
  std::set<std::vector<std::string>> in_grid;  // values alone
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) in_grid.insert(sweep.grid.values(i));
  std::size_t taken = 0;
  for (std::size_t r = 1; r < records.size(); ++r) {
    const std::vector<std::string>& record = records[r].cells;
    // The last line of a file that was cut off is short.
    if (record.size() != header.size() || !record[keys + 9].empty()) continue;
    std::vector<std::string> id(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(keys));
    if (!in_grid.contains(id))
      throw Error(
          csv_file + ":" + std::to_string(records[r].line) +
          ": a point that this grid does not have, and whose row would be lost; name another "
          "file, or keep its values in the grid");
    id.insert(id.end(), {record[keys + 6], record[keys + 7], record[keys + 8]});
    const auto found = points.find(id);
    if (found == points.end() || sweep.rows[found->second].played) continue;
    try {
      take(sweep.rows[found->second], record, keys);
    } catch (const Error& error) {
      throw Error(csv_file + ":" + std::to_string(records[r].line) + ": " + error.what() +
                  "; mend or remove the file");
    }
    ++taken;
  }
  return taken;
}

}  // namespace ghostrank
