// ghostrank sweep: every point of a grid of one job's settings, each a run of its own, several at a
// time. Every row is saved as soon as its run has ended, and a sweep resumes from its CSV.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "emulator/control/control.h"
#include "emulator/host/host_facts.h"
#include "profiles/error.h"
#include "profiles/load/config.h"
#include "profiles/load/named_files.h"
#include "profiles/planners/plan.h"
#include "tools/report/files/output_files.h"
#include "tools/report/files/temporary_file.h"
#include "tools/report/job_hash.h"
#include "tools/report/plan_report.h"
#include "tools/sweep/rows.h"
#include "tools/verbs.h"
#include "tools/verbs/compare_play.h"
#include "tools/version.h"
#include "tools/watch/outcome.h"

namespace ghostrank {
namespace {

constexpr int kMostAtOnce = 256;

struct SweepFlags {
  JobFlags job;
  std::string grid, json, csv, picture;
  int at_once = 0;  // 0: as the fabric allows
  bool quiet = false, allow_unfaithful = false, print_config = false, dry_run = false;
};

// Without values that no job can be given: their points become rows with the error.
std::vector<std::string> settings_of(const SweepAxis& axis) {
  std::vector<std::string> settings;
  for (const std::string& value : axis.values) {
    const std::string setting = axis.key + "=" + value;
    try {
      undone({setting}, {});
    } catch (const Error&) {
      continue;
    }
    settings.push_back(setting);
  }
  return settings;
}

// Refuses what would be without effect: -s and keys of the grid whose place others of the grid
// take, and what -s and the grid say of the seed beside --seed.
SweepGrid grid_of(const SweepFlags& flags) {
  check_seed(flags.job.seed, flags.job.overrides);
  SweepGrid grid = parse_grid(flags.grid);
  for (std::size_t a = 0; a < grid.axes.size(); ++a) {
    const SweepAxis& axis = grid.axes[a];
    const std::vector<std::string> settings = settings_of(axis);
    if (flags.job.seed && !undone(settings, {"run.seed=0"}).empty())
      throw Error("--seed and run.seed of the grid both say the seed; leave --seed out");
    if (const std::string path = undone(flags.job.overrides, settings); !path.empty())
      throw Error("the grid's " + axis.key + " takes the place of -s " + path +
                  "; leave that out, or give it in the grid");
    for (std::size_t b = 0; b < a; ++b)
      if (const std::string path = undone(settings_of(grid.axes[b]), settings); !path.empty())
        throw Error("--grid: " + axis.key + " takes the place of " + path +
                    (path == grid.axes[b].key ? "" : " in " + grid.axes[b].key) +
                    "; leave one of them out");
  }
  return grid;
}

std::vector<std::string> settings_of(const SweepFlags& flags, const SweepGrid& grid,
                                     std::size_t point) {
  std::vector<std::string> settings = flags.job.overrides;
  const std::vector<std::string> values = grid.values(point);
  for (std::size_t a = 0; a < values.size(); ++a)
    settings.push_back(grid.axes[a].key + "=" + values[a]);
  if (flags.job.seed) settings.push_back("run.seed=" + std::to_string(*flags.job.seed));
  return settings;
}

// A grid loaded whole before its first run, so that a mistyped key costs no time. A point whose
// values do not go together becomes a row with an error; if no point is left, that is the user's
// error.
struct SweepPlan {
  Sweep sweep;
  bool real_time = false;  // some point plays in real time
};

SweepPlan plan_of(const SweepFlags& flags) {
  if (world_from_environment().size > 1)
    throw Error("sweep starts the processes of its runs; start sweep itself once");
  if (flags.job.path == "-") throw Error("sweep reads its job for every point; give it a file");
  SweepPlan plan;
  Sweep& sweep = plan.sweep;
  sweep.grid = grid_of(flags);
  sweep.job = std::filesystem::path(flags.job.path).stem();
  std::string first_error;
  bool any = false;
  for (std::size_t i = 0; i < sweep.grid.points(); ++i) {
    SweepRow row;
    row.version = std::string(GHOSTRANK_VERSION) + " " + build_facts().commit;
    try {
      const LoadedJob job = load_job(flags.job.path, settings_of(flags, sweep.grid, i));
      row.seed = std::to_string(job.spec.run.seed);
      row.config_hash = job_hash(job.config_json, named_files(job));
      plan.real_time = plan.real_time || job.spec.fabric.kind != FabricKind::virtual_time;
      any = true;
    } catch (const Error& error) {
      row.played = true;
      row.error = error.what();
      if (first_error.empty()) first_error = error.what();
    }
    sweep.rows.push_back(std::move(row));
  }
  if (!any) throw Error(first_error);
  return plan;
}

// --print-config and --dry-run: every point under a head that says its values. Returns the exit
// status: 1 if some points cannot be shown, a user's error if none can.
int show_points(const SweepFlags& flags) {
  const SweepGrid grid = grid_of(flags);
  std::size_t shown = 0;
  for (std::size_t i = 0; i < grid.points(); ++i) {
    std::string head = "#";
    const std::vector<std::string> values = grid.values(i);
    for (std::size_t a = 0; a < values.size(); ++a)
      head += " " + grid.axes[a].key + "=" + values[a];
    std::printf("%s%s\n", i == 0 ? "" : "\n", head.c_str());
    try {
      const LoadedJob job = load_job(flags.job.path, settings_of(flags, grid, i));
      if (flags.print_config) print_config(job);
      if (flags.dry_run) show_plan(job, plan_workload(job.spec), {});
      ++shown;
    } catch (const Error& error) {
      std::fflush(stdout);  // the head stands above the reason
      failed(error.what());
    }
  }
  return shown == grid.points() ? 0 : shown > 0 ? 1 : static_cast<int>(ErrorKind::usage);
}

// The runs under way; the destructor kills those that are left.
class Sweeper {
 public:
  Sweeper(const SweepFlags& flags, Sweep& sweep, int at_once)
      : flags_(flags), sweep_(sweep), at_once_(static_cast<std::size_t>(at_once)) {}
  ~Sweeper() {
    for (const auto& [pid, point] : running_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // Returns the signal that stopped it, or 0.
  int play() {
    std::size_t next = 0;
    while (true) {
      const int signal = interruption_.received();
      for (; signal == 0 && running_.size() < at_once_ && next < sweep_.rows.size(); ++next)
        if (!sweep_.rows[next].played) start(next);
      if (signal != 0 && running_.empty()) return signal;
      if (signal != 0) end_all(signal);
      if (running_.empty()) return 0;
      interruption_.wait();
      collect();
    }
  }

 private:
  std::string log_of(std::size_t point) const {
    return scratch_.file(std::to_string(point) + ".log");
  }
  std::string result_of(std::size_t point) const {
    return scratch_.file(std::to_string(point) + ".json");
  }

  void start(std::size_t point) {
    std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe"), "run",
                                   flags_.job.path};
    for (const std::string& setting : settings_of(flags_, sweep_.grid, point))
      words.insert(words.end(), {"-s", setting});
    words.insert(words.end(), {"--json", result_of(point), "--quiet", "--allow-unfaithful"});
    running_[start_run(words, log_of(point), interruption_)] = point;
  }

  void end_all(int signal) {
    for (const auto& [pid, point] : running_) kill(pid, signal);
    stopping_ = true;
  }

  void collect() {
    for (auto at = running_.begin(); at != running_.end();) {
      int status = 0;
      if (waitpid(at->first, &status, WNOHANG) != at->first) {
        ++at;
        continue;
      }
      const std::size_t point = at->second;
      at = running_.erase(at);
      if (!stopping_) ended(point, status);
    }
  }

  void ended(std::size_t point, int status) {
    SweepRow& row = sweep_.rows[point];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      read_figures(row, result_of(point));
    } else {
      row.played = true;
      row.error = last_words(log_of(point));
    }
    std::remove(result_of(point).c_str());
    std::remove(log_of(point).c_str());
    if (!flags_.csv.empty() && !is_in_place(flags_.csv)) write_whole(flags_.csv, sweep_csv(sweep_));
    if (!flags_.quiet) tell(point);
  }

  void tell(std::size_t point) {
    const SweepRow& row = sweep_.rows[point];
    const auto played = std::count_if(sweep_.rows.begin(), sweep_.rows.end(),
                                      [](const SweepRow& r) { return r.played; });
    std::string text;
    const std::vector<std::string> values = sweep_.grid.values(point);
    for (const std::string& value : values) text += (text.empty() ? "" : " ") + value;
    std::fprintf(stderr, "%zu of %zu: %s%s\n", static_cast<std::size_t>(played), sweep_.rows.size(),
                 text.c_str(), row.error.empty() ? "" : (": " + row.error).c_str());
  }

  const SweepFlags& flags_;
  Sweep& sweep_;
  const std::size_t at_once_;
  bool stopping_ = false;
  TemporaryFolder scratch_;
  Interruption interruption_;
  std::map<pid_t, std::size_t> running_;  // point by process
};

// The exit status of a sweep that ended, with the reason on stderr.
int outcome_of(const SweepFlags& flags, const Sweep& sweep) {
  int status = 0;
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    std::string who;
    for (const std::string& value : sweep.grid.values(i)) who += (who.empty() ? "" : " ") + value;
    if (!row.error.empty()) status = failed(who + ": " + row.error);
    if (row.good() && row.faithful == "false" && !flags.allow_unfaithful)
      status = failed(who +
                      ": not faithful; stop other programs on this machine, raise scale.dilation, "
                      "or accept it with --allow-unfaithful");
  }
  return status;
}

void add_flags(CLI::App& app, SweepFlags& flags) {
  add_job_flags(app, flags.job);
  app.get_option("job")->description("job file (YAML), or a result whose job is taken again");
  app.add_option("--grid", flags.grid, "keys and their values; every combination is played")
      ->required()
      ->type_name("'KEY=V1,V2;KEY=...'")
      ->group("Job");
  app.add_flag("--print-config", flags.print_config,
               "print every key of every point, its value and origin; do not play")
      ->group("Job");
  app.add_flag("--dry-run", flags.dry_run, "say what each point would send; do not play")
      ->group("Job");
  app.add_option("-j,--at-once", flags.at_once,
                 "runs at the same time; default: one per core in virtual time, else 1")
      ->check(between(1, kMostAtOnce))
      ->type_name("N")
      ->group("Runs");
  app.add_option("--json", flags.json, "the same rows as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_option("--csv", flags.csv,
                 "a row per point; rows that the file already has are not played again; - is "
                 "stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_option("--picture", flags.picture, "throughput over the last key of the grid")
      ->type_name("FILE.svg")
      ->group("Output");
  app.add_flag("-q,--quiet", flags.quiet, "no progress, no table")->group("Output");
  app.add_flag("--allow-unfaithful", flags.allow_unfaithful,
               "exit 0 although the machine could not keep up")
      ->group("Outcome");
  app.footer(
      "Example:\n"
      "  ghostrank sweep job.yaml --csv sweep.csv --picture sweep.svg \\\n"
      "      --grid 'collectives.allreduce=ring,double_tree;cluster.nic.rate=10Gbps,25Gbps'\n\n"
      "Exit status: 0 ok; 1 a point failed or was not faithful; 2 usage or job; 3 environment; "
      "129, 130,\n"
      "143 stopped by a signal.");
}

}  // namespace

int verb_sweep(const Argv& argv) {
  SweepFlags flags;
  CLI::App app(
      "Play every point of a grid of settings, several at a time, and keep one CSV row of each.",
      "ghostrank sweep");
  add_flags(app, flags);
  if (!parse(app, argv)) return 0;
  for (const char* flag : {"--dry-run", "--print-config"})
    refuse_beside(app, flag, {"--json", "--csv", "--picture"});
  if (flags.print_config || flags.dry_run) return show_points(flags);
  SweepPlan plan = plan_of(flags);
  Sweep& sweep = plan.sweep;
  check_outputs({{"--json", flags.json}, {"--csv", flags.csv}, {"--picture", flags.picture}});
  if (!flags.csv.empty() && !is_in_place(flags.csv)) {
    const std::size_t known = resume(sweep, flags.csv);
    if (known > 0 && !flags.quiet)
      std::fprintf(stderr, "%zu of %zu points are in %s already\n", known, sweep.rows.size(),
                   flags.csv.c_str());
  }
  const int at_once = flags.at_once > 0 ? flags.at_once : plan.real_time ? 1 : usable_cores();
  Sweeper sweeper(flags, sweep, at_once);  // holds signals back until the files are written
  const int signal = sweeper.play();
  const int unwritten =
      write_each(std::vector<TextFile>{{flags.json, [&] { return sweep_json(sweep); }},
                                       {flags.csv, [&] { return sweep_csv(sweep); }},
                                       {flags.picture, [&] { return sweep_svg(sweep); }}});
  if (!flags.quiet && flags.json != "-" && flags.csv != "-")
    std::fputs(sweep_text(sweep).c_str(), stdout);
  if (signal != 0) {
    failed("interrupted; the same command with the same --csv goes on");
    return 128 + signal;
  }
  const int status = outcome_of(flags, sweep);
  return unwritten != 0 ? unwritten : status;
}

}  // namespace ghostrank
