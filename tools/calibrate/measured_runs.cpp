#include "tools/calibrate/measured_runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "profiles/error.h"
#include "profiles/input/input_file.h"
#include "profiles/median.h"
#include "tools/text/csv.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

constexpr double kLongest = 1e6;  // seconds of a step

// Without the blanks around it, which many write behind commas.
std::string trimmed(const std::string& cell) {
  constexpr const char* kBlanks = " \t";
  const std::size_t first = cell.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return cell.substr(first, cell.find_last_not_of(kBlanks) - first + 1);
}

class RunsReader {
 public:
  RunsReader(std::string csv, std::string job, const std::vector<std::string>& overrides)
      : csv_(std::move(csv)), job_(std::move(job)), overrides_(overrides) {}

  std::vector<MeasuredRun> read() {
    std::vector<CsvRecord> records = csv_records(text(), CsvComments::skipped);
    for (CsvRecord& record : records) {
      if (record.open)
        throw Error(at(record.line) + "a quote is not closed; write \" twice within quotes");
      for (std::string& cell : record.cells) cell = trimmed(cell);
    }
    std::erase_if(records, [](const CsvRecord& record) {
      return record.cells.size() == 1 && record.cells.front().empty();
    });
    if (records.size() < 2)
      throw Error(csv_ + ": there are no runs; write the names of columns, as in " + kExample +
                  ", then a line for every run");
    columns_ = std::move(records.front().cells);
    check_columns(records.front().line);
    for (std::size_t r = 1; r < records.size(); ++r) add(records[r]);
    std::vector<MeasuredRun> runs;
    for (const std::string& config : order_) runs.push_back(joined(config));
    return runs;
  }

 private:
  static constexpr const char* kExample = "job,plan,seconds";
  struct Line {
    int line = 0;
    double seconds = 0;
    std::vector<std::string> cells;
    MeasuredRun run;
  };

  std::string text() const { return read_input(csv_, "--from takes a CSV file of runs"); }
  std::string at(int line) const { return csv_ + ":" + std::to_string(line) + ": "; }

  void check_columns(int line) const {
    if (std::count(columns_.begin(), columns_.end(), "seconds") != 1)
      throw Error(at(line) + "one column has to be named seconds; write as in " + kExample);
    for (const std::string& column : columns_)
      if (column.empty() || std::count(columns_.begin(), columns_.end(), column) > 1)
        throw Error(at(line) +
                    (column.empty() ? "a column has no name" : "two columns are named " + column) +
                    "; name each: seconds, job, plan, or a key of a job");
    if (job_.empty() && std::find(columns_.begin(), columns_.end(), "job") == columns_.end())
      throw Error(at(line) +
                  "no column is named job; add it, with the job file of every run, or give --job, "
                  "the job that all runs have in common");
  }

  double seconds_of(const std::string& cell, int line) const {
    double value = 0;
    const auto end = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (end.ec != std::errc() || end.ptr != cell.data() + cell.size() || !(value > 0) ||
        value > kLongest)
      throw Error(at(line) + "'" + cell +
                  "' is no time of a step; write seconds, more than 0 and at most 1000000");
    return value;
  }

  void add(const CsvRecord& record) {
    if (record.cells.size() != columns_.size())
      throw Error(at(record.line) + "there are " + std::to_string(record.cells.size()) +
                  " cells for " + std::to_string(columns_.size()) +
                  " columns; separate them by commas, and quote cells that hold one");
    Line line;
    line.line = record.line;
    line.cells = record.cells;
    std::string job = job_;
    std::vector<std::string> settings = overrides_;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& name = columns_[c];
      const std::string& cell = record.cells[c];
      if (name == "seconds") {
        line.seconds = seconds_of(cell, record.line);
        continue;
      }
      if (cell.empty()) continue;
      if (!line.run.name.empty()) line.run.name += ", ";
      if (name == "job")
        job = (std::filesystem::path(csv_).parent_path() / cell).string();
      else if (name == "plan")
        add_plan(cell, record.line, settings);
      else
        settings.push_back(name + "=" + cell);
    }
    if (job.empty())
      throw Error(at(record.line) + "no job; name its file, or give --job for such lines");
    settings.emplace_back("fabric.kind=virtual");
    try {
      line.run.job = load_job(job, settings);
      if (!line.run.job.spec.jobs.empty())
        throw Error(line.run.job.spec.source_of("jobs") +
                    ": jobs: a measured step is of one job; name one's file");
    } catch (const Error& error) {
      throw Error(at(record.line) + error.what());
    }
    check_device(line);
    const std::string& config = line.run.job.config_json;
    if (lines_[config].empty()) order_.push_back(config);
    lines_[config].push_back(std::move(line));
  }

  void add_plan(const std::string& cell, int line, std::vector<std::string>& settings) const {
    std::istringstream words(cell);
    for (std::string word; words >> word;) {
      if (word.find('=') == std::string::npos)
        throw Error(at(line) + "'" + word +
                    "' is no setting of a plan; write as in tp=8 pp=4 micro_batch=2");
      settings.push_back(word.starts_with("parallel.") ? word : "parallel." + word);
    }
  }

  void check_device(const Line& line) {
    const DeviceProfile& device = line.run.job.spec.device;
    if (device_.empty()) device_ = device.name;
    if (device.name != device_)
      throw Error(at(line.line) + "the run is on " + device.name + ", others on " + device_ +
                  "; a profile is of one device: give every device a file of its own");
  }

  // The cells in which lines differ, apart from the seconds.
  std::string name_of(const Line& one) const {
    std::string name;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c] == "seconds" || one.cells[c].empty() || !differs(c)) continue;
      const bool speaks = columns_[c] == "job" || columns_[c] == "plan" || columns_[c] == "model";
      const std::string key = columns_[c].substr(columns_[c].rfind('.') + 1);
      name += (name.empty() ? "" : ", ") + (speaks ? "" : key + " ") + one.cells[c];
    }
    return name;
  }
  bool differs(std::size_t column) const {
    const std::string& first = lines_.at(order_.front()).front().cells[column];
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const auto& job) { return job.second.front().cells[column] != first; });
  }

  MeasuredRun joined(const std::string& config) {
    std::vector<Line>& lines = lines_[config];
    std::vector<double> times;
    for (const Line& line : lines) times.push_back(line.seconds);
    const auto [shortest, longest] =
        std::minmax_element(lines.begin(), lines.end(),
                            [](const Line& a, const Line& b) { return a.seconds < b.seconds; });
    if (longest->seconds > kMostSpread * shortest->seconds)
      throw Error(at(std::max(shortest->line, longest->line)) + "contradicts line " +
                  std::to_string(std::min(shortest->line, longest->line)) + ": the same job took " +
                  humane_seconds(shortest->seconds) + " and " + humane_seconds(longest->seconds) +
                  "; say what differed in a column of its own, or leave one out");
    MeasuredRun run = std::move(lines.front().run);
    run.seconds = median(std::move(times));
    run.name = name_of(lines.front());
    for (const Line& line : lines) run.lines.push_back(line.line);
    return run;
  }

  const std::string csv_, job_;
  const std::vector<std::string>& overrides_;
  std::vector<std::string> columns_;
  std::string device_;
  std::map<std::string, std::vector<Line>> lines_;  // by the resolved job
  std::vector<std::string> order_;                  // of resolved jobs
};

}  // namespace

std::vector<MeasuredRun> read_measured_runs(const std::string& csv, const std::string& job,
                                            const std::vector<std::string>& overrides) {
  return RunsReader(csv, job, overrides).read();
}

}  // namespace ghostrank
