#include "tools/verbs/compare_job.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "emulator/control/control.h"
#include "profiles/error.h"
#include "profiles/load/config.h"
#include "profiles/load/named_files.h"
#include "profiles/planners/plan.h"
#include "tools/compare/ab/bundle.h"
#include "tools/compare/ab/comparison.h"
#include "tools/compare/ab/tune.h"
#include "tools/report/files/output_files.h"
#include "tools/report/files/temporary_file.h"
#include "tools/report/job_hash.h"
#include "tools/report/plan_report.h"
#include "tools/text/humane.h"
#include "tools/verbs/compare_play.h"
#include "tools/watch/kept_lines.h"
#include "tools/watch/outcome.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

constexpr int kRuns = 8;
constexpr int kMaxRunsFactor = 8;  // without --max-runs, --until stops at this multiple of --runs
constexpr int kMostRuns = 10'000, kMostProcesses = 1024;

// The plan of a comparison, checked whole before the first run.
struct ComparisonPlan {
  AbComparison comparison;
  std::vector<LoadedJob> jobs;    // of the variants
  std::vector<NamedFiles> files;  // that these name
  std::string job_path;
  std::size_t runs = kRuns, max_runs = kRuns;
  std::size_t retries = 0;  // of each variant
  std::optional<double> until;
  std::vector<RatioExpectation> expectations;
};

std::vector<Variant> variants_of(const CompareJobFlags& flags) {
  std::vector<Variant> variants;
  const auto add = [&](const char* name, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    Variant variant{name, {}};
    for (const std::string& text : texts) {
      for (std::string& setting : parse_settings(std::string("--") + name, text))
        variant.settings.push_back(std::move(setting));
    }
    variants.push_back(std::move(variant));
  };
  add("a", flags.a);
  add("b", flags.b);
  for (const std::string& text : flags.variants) variants.push_back(parse_variant(text));
  check_variants(variants);
  return variants;
}

bool given_variants(const CompareJobFlags& f) {
  return !f.a.empty() || !f.b.empty() || !f.variants.empty();
}

// The variants that the job names.
std::vector<Variant> variants_in(const std::string& path,
                                 const std::vector<std::string>& overrides) {
  std::vector<Variant> variants;
  for (const JobVariant& one : load_job(path, overrides).spec.variants)
    variants.push_back(parse_variant(one.name + ":" + one.settings));
  if (variants.empty())
    throw Error(path +
                ": has no variants to compare; add  variants: {NAME: 'key=value ...'}  to "
                "the job, or give --a and --b");
  check_variants(variants);
  return variants;
}

LoadedJob load_variant(const std::string& path, const std::vector<std::string>& common,
                       const Variant& variant) {
  std::vector<std::string> overrides = common;
  overrides.insert(overrides.end(), variant.settings.begin(), variant.settings.end());
  LoadedJob job;
  try {
    job = load_job(path, overrides);
  } catch (const Error& error) {
    throw Error("variant " + variant.name + ": " + error.what());
  }
  if (gives(variant.settings, "run.seed"))
    throw Error("variant " + variant.name +
                " sets run.seed, which is the same for all variants of a block; give --seed");
  return job;
}

// Refuses -s for a key that every variant sets, too.
void check_common(const std::vector<std::string>& common, const std::vector<Variant>& variants) {
  for (const std::string& setting : common) {
    const std::string key = undone({setting}, variants.front().settings);
    if (!key.empty() && std::all_of(variants.begin(), variants.end(), [&](const Variant& variant) {
          return undone({setting}, variant.settings) == key;
        }))
      throw Error("every variant takes the place of -s " + key + "; leave that out");
  }
}

void check_processes_of(const ComparisonPlan& plan) {
  if (world_from_environment().size > 1) {
    throw Error(
        "compare starts the processes of every run; start compare itself once, with "
        "--processes N");
  }
  if (plan.comparison.processes == 1) return;
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    const FabricKind kind = plan.jobs[i].spec.fabric.kind;
    if (!is_network(kind)) {
      throw Error("--processes " + std::to_string(plan.comparison.processes) + ": variant " +
                  plan.comparison.variants[i].name +
                  " plays on fabric.kind=" + std::string(name_of(kind)) +
                  ", which is one process; set fabric.kind=ofi or leave out --processes");
    }
  }
}

// Every variant gets the slicing and the channels with which it is fastest.
void tune(ComparisonPlan& plan, bool quiet) {
  AbComparison& c = plan.comparison;
  for (std::size_t i = 0; i < c.variants.size(); ++i) {
    Variant& variant = c.variants[i];
    const Patience patience("tuning variant " + variant.name, !quiet);
    std::vector<std::string> given = c.common;
    given.insert(given.end(), variant.settings.begin(), variant.settings.end());
    const std::string hash = job_hash(plan.jobs[i].config_json, plan.files[i]);
    try {
      const Tuning tuning = tune_variant(plan.jobs[i], [&](const std::vector<std::string>& more) {
        std::vector<std::string> all = given;
        all.insert(all.end(), more.begin(), more.end());
        return virtual_step(plan.job_path, std::move(all));
      });
      const LoadedJob now = load_variant(plan.job_path, c.common, variant);
      if (job_hash(now.config_json, named_files(now)) != hash)
        throw Error("it " + another_job("comparison"));
      c.notes.push_back(variant.name + ": " + words_of(tuning));
      if (tuning.settings.empty()) continue;
      variant.settings.insert(variant.settings.end(), tuning.settings.begin(),
                              tuning.settings.end());
    } catch (const Error& error) {
      throw Error("--tune plays variant " + variant.name + " in virtual time: " + error.what());
    }
    plan.jobs[i] = load_variant(plan.job_path, c.common, variant);
    plan.files[i] = named_files(plan.jobs[i]);
  }
}

ComparisonPlan plan_of(const Argv& argv, const CompareJobFlags& flags,
                       const std::vector<std::string>& files) {
  if (files.size() != 1)
    throw Error("--a, --b and --variant compare variants of one job; name one job file");
  if (files[0] == "-") throw Error("compare reads its job once for every run; give it a file");
  check_seed(flags.seed, flags.overrides);
  ComparisonPlan plan;
  AbComparison& c = plan.comparison;
  c.variants = given_variants(flags) ? variants_of(flags) : variants_in(files[0], flags.overrides);
  c.version = GHOSTRANK_VERSION;
  c.argv = argv;
  c.common = flags.overrides;
  c.started_utc = utc_now();
  c.processes = flags.processes;
  if (!flags.margin.empty()) c.margin = parse_margin(flags.margin);
  if (!flags.until.empty()) plan.until = parse_until(flags.until);
  for (const std::string& text : flags.expect)
    plan.expectations.push_back(parse_ratio_expectation(text, c.variants));
  plan.job_path = files[0];
  for (const Variant& variant : c.variants) {
    plan.jobs.push_back(load_variant(files[0], flags.overrides, variant));
    plan.files.push_back(named_files(plan.jobs.back()));
  }
  check_common(flags.overrides, c.variants);
  c.job = std::filesystem::path(files[0]).stem();
  c.seed = flags.seed.value_or(plan.jobs[0].spec.run.seed);
  check_processes_of(plan);
  if (flags.max_runs && !plan.until)
    throw Error("--max-runs bounds the runs of --until; give --until 'ci<1%', or --runs alone");
  plan.runs = flags.runs.value_or(kRuns);
  plan.max_runs = plan.until ? static_cast<std::size_t>(flags.max_runs.value_or(
                                   static_cast<int>(plan.runs) * kMaxRunsFactor))
                             : plan.runs;
  if (plan.max_runs < plan.runs) throw Error("--max-runs is less than --runs; raise it");
  plan.retries = flags.retries ? static_cast<std::size_t>(*flags.retries) : plan.runs / 2;
  if (flags.tune) tune(plan, flags.quiet);
  return plan;
}

// --print-config and --dry-run: every variant under a head with its name and settings.
void show_variants(const ComparisonPlan& plan, const CompareJobFlags& flags) {
  for (std::size_t v = 0; v < plan.jobs.size(); ++v) {
    const Variant& variant = plan.comparison.variants[v];
    std::string head = "# " + variant.name + ":";
    for (const std::string& setting : variant.settings) head += " " + setting;
    std::printf("%s%s\n", v == 0 ? "" : "\n", head.c_str());
    if (flags.print_config) print_config(plan.jobs[v]);
    if (flags.dry_run) show_plan(plan.jobs[v], plan_workload(plan.jobs[v].spec), {});
  }
}

std::vector<std::string> words_of_run(const ComparisonPlan& plan, std::size_t variant,
                                      std::uint64_t seed, const std::string& result) {
  std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe"), "run",
                                 plan.job_path};
  const auto set = [&](const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) words.insert(words.end(), {"-s", setting});
  };
  set(plan.comparison.common);
  set(plan.comparison.variants[variant].settings);
  set({"run.seed=" + std::to_string(seed)});
  words.insert(words.end(), {"--json", result, "--quiet", "--allow-unfaithful"});
  return words;
}

// Plays blocks of runs, and saves them in the bundle after every block.
class Player {
 public:
  Player(ComparisonPlan& plan, const CompareJobFlags& flags, const std::string& json)
      : plan_(plan), quiet_(flags.quiet), retries_left_(plan.jobs.size(), plan.retries) {
    if (flags.bundle.empty()) {
      scratch_ = std::make_unique<TemporaryFolder>();
    } else {
      bundle_ = std::make_unique<Bundle>(flags.bundle);
      std::vector<std::string> configs;
      for (const LoadedJob& job : plan.jobs) configs.push_back(job.config_json);
      bundle_->begin(plan.comparison.variants, configs, plan.comparison.version);
    }
    if (!json.empty() && !is_in_place(json)) kept_.open(json);
  }

  // Returns the exit status: 0, or that of a failed run or of the signal.
  int play() {
    AbComparison& c = plan_.comparison;
    int status = 0;
    for (std::size_t block = 0; block < plan_.max_runs && status == 0; ++block) {
      status = play_block(block);
      if (bundle_) bundle_->write(c);
      const AbSummary summary = summarize(c);
      if (status != 0 || summary.deterministic) break;
      if (block + 1 < plan_.runs) continue;
      if (!plan_.until || widest(summary) < *plan_.until) break;
      if (block + 1 == plan_.max_runs)
        c.notes.push_back("stopped after " + std::to_string(plan_.max_runs) +
                          " runs of each variant with intervals of +- " +
                          humane_percent(widest(summary)) + ", not below " +
                          humane_percent(*plan_.until) + " as --until asks");
    }
    if (bundle_) bundle_->write(c);
    return status;
  }

  // The whole result has been written.
  void result_saved() { kept_.remove(); }

 private:
  int play_block(std::size_t block) {
    AbComparison& c = plan_.comparison;
    for (const std::size_t variant : order_in_block(c.variants.size(), block, c.seed)) {
      const bool played = std::any_of(c.runs.begin(), c.runs.end(), [&](const AbRun& run) {
        return run.variant == variant && run.deterministic;
      });
      if (played) continue;  // another run would give the same result
      for (int attempt = 1; attempt == 1 || c.runs.back().retried; ++attempt) {
        if (const int status = play_one(block, variant, attempt); status != 0) return status;
      }
    }
    return 0;
  }

  // A run that was not faithful is played again with the same seed, as long as the variant has
  // retries left.
  bool takes_retry(const AbRun& run) {
    if (run.faithful || run.modelled || retries_left_[run.variant] == 0) return false;
    --retries_left_[run.variant];
    return true;
  }

  int play_one(std::size_t block, std::size_t variant, int attempt) {
    AbComparison& c = plan_.comparison;
    const std::string& name = c.variants[variant].name;
    const std::string who = "run " + std::to_string(block + 1) + " of " + name;
    const std::string kept = Bundle::result_name(block + 1, name, attempt);
    const std::string result =
        bundle_ ? bundle_->folder() + "/" + kept : scratch_->file("result.json");
    const std::uint64_t seed = c.seed + block;
    RunOutcome outcome;
    if (interruption_.received() == 0)
      outcome = play_run(words_of_run(plan_, variant, seed, result), c.processes,
                         result.substr(0, result.size() - 5) + ".log", interruption_);
    if (const int signal = interruption_.received(); signal != 0) {
      c.interrupted = "interrupted in " + who;
      return 128 + signal;
    }
    if (outcome.status != 0) {
      c.interrupted = who + " failed: " + outcome.words;
      return outcome.status;
    }
    AbRun run = read_ab_run(result, plan_.jobs[variant].spec);
    if (run.job_hash != job_hash(plan_.jobs[variant].config_json, plan_.files[variant], seed)) {
      c.interrupted = who + " " + another_job("comparison");
      return 1;
    }
    run.variant = variant;
    run.block = block;
    run.seed = seed;
    if (bundle_) run.file = kept;
    run.retried = takes_retry(run);
    if (!quiet_)
      std::fprintf(stderr, "%s: %s a step%s%s\n", who.c_str(),
                   humane_seconds(run.step_seconds).c_str(),
                   run.faithful || run.modelled ? "" : (", NOT faithful: " + run.reason).c_str(),
                   run.retried ? "; playing it again" : "");
    if (const std::string why = kept_.keep(to_json(run).dump() + "\n"); !why.empty())
      std::fprintf(stderr, "ghostrank: runs are no longer kept in %s: %s; the comparison goes on\n",
                   kept_.path().c_str(), why.c_str());
    c.runs.push_back(std::move(run));
    return 0;
  }

  ComparisonPlan& plan_;
  bool quiet_;
  std::vector<std::size_t> retries_left_;  // by variant
  std::unique_ptr<Bundle> bundle_;
  std::unique_ptr<TemporaryFolder> scratch_;
  KeptLines kept_;  // of every run
  Interruption interruption_;
};

// Prints the expectations that the comparison missed; returns the exit status.
int outcome_of(const ComparisonPlan& plan, const CompareJobFlags& flags, const AbSummary& summary) {
  int status = 0;
  if (!summary.faithful && !flags.allow_unfaithful)
    status = failed("not faithful: " + summary.unfaithful +
                    "; stop other programs on this machine, or raise scale.dilation, or accept it "
                    "with --allow-unfaithful");
  for (const RatioExpectation& e : plan.expectations) {
    const double ratio = ratio_between(summary, e.of, e.to);
    if (e.below ? ratio < e.bound : ratio > e.bound) continue;
    status = failed("expected " + e.text + ", got " + significant(ratio, 6));
  }
  return status;
}

int redraw_bundle(const CompareJobFlags& flags, const std::vector<std::string>& files) {
  if (!files.empty()) throw Error("--redraw takes its runs from the bundle; name no job beside it");
  const AbComparison comparison = redraw(flags.redraw);
  if (!flags.picture.empty()) write_whole(flags.picture, ab_svg(comparison, summarize(comparison)));
  std::fputs(ab_text(comparison, summarize(comparison), paint_for(STDOUT_FILENO)).c_str(), stdout);
  return 0;
}

}  // namespace

void add_compare_job_flags(CLI::App& app, CompareJobFlags& f) {
  const auto settings = [&](const char* name, std::vector<std::string>& texts, const char* what) {
    app.add_option(name, texts, what)
        ->type_name("'KEY=VALUE ...'")
        ->allow_extra_args(false)
        ->group("Variants");
  };
  settings("--a", f.a, "settings of variant a, the baseline");
  settings("--b", f.b, "settings of variant b");
  app.add_option("--variant", f.variants, "a variant by name, NAME:'key=value ...'; repeatable")
      ->type_name("NAME:'...'")
      ->allow_extra_args(false)
      ->group("Variants");
  app.add_option("-s,--set", f.overrides, "override a key for all variants; repeatable")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->group("Variants");
  app.add_flag("--print-config", f.print_config,
               "print every key of every variant, its value and origin; do not play")
      ->group("Variants");
  app.add_flag("--dry-run", f.dry_run, "say what each variant would send; do not play")
      ->group("Variants");
  app.add_flag("--tune", f.tune,
               "first give each variant the slices and channels with which it is fastest in "
               "virtual time")
      ->group("Variants");
  add_seed(app, f.seed, "seed of the first block, the order and the intervals (run.seed)")
      ->group("Runs");
  app.add_option("--runs", f.runs, "runs of each variant; default 8")
      ->check(between(1, kMostRuns))
      ->type_name("N")
      ->group("Runs");
  app.add_option("--until", f.until, "more runs until half of every interval is below: 'ci<1%'")
      ->type_name("ci<SHARE")
      ->group("Runs");
  app.add_option("--max-runs", f.max_runs, "--until gives up; default 8 times --runs")
      ->check(between(1, kMostRuns))
      ->type_name("N")
      ->group("Runs");
  app.add_option("--retries", f.retries,
                 "runs of each variant played again if they were not faithful; default half of "
                 "--runs")
      ->check(between(0, kMostRuns))
      ->type_name("N")
      ->group("Runs");
  app.add_option("--processes", f.processes, "processes of a run on this machine (fabric ofi)")
      ->check(between(1, kMostProcesses))
      ->type_name("N")
      ->group("Runs");
  app.add_option("--csv", f.csv, "one row per run; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_option("--picture", f.picture, "each run's step time")
      ->type_name("FILE.svg")
      ->group("Output");
  app.add_option("--bundle", f.bundle, "jobs, seeds, environment, raw results, picture and script")
      ->type_name("DIR")
      ->group("Output");
  app.add_option("--redraw", f.redraw, "draw a bundle's report and picture again")
      ->type_name("DIR")
      ->group("Output");
  app.add_flag("-q,--quiet", f.quiet, "no progress, no table")->group("Output");
  app.add_option("--margin", f.margin, "differences up to this share are no effect; default 0")
      ->type_name("SHARE")
      ->group("Outcome");
  app.add_option("--expect", f.expect,
                 "exit 1 unless a ratio of medians is so: 'b/a<0.6'; repeatable")
      ->type_name("B/A<VALUE")
      ->allow_extra_args(false)
      ->group("Outcome");
  app.add_flag("--allow-unfaithful", f.allow_unfaithful,
               "exit 0 although the machine could not keep up; nothing is concluded all the same")
      ->group("Outcome");
}

bool compares_job(const CompareJobFlags& f, const std::vector<std::string>& files) {
  const bool job_alone =
      files.size() == 1 && (files[0].ends_with(".yaml") || files[0].ends_with(".yml"));
  return given_variants(f) || job_alone || !f.redraw.empty();
}

int compare_job(const Argv& argv, const CompareJobFlags& flags,
                const std::vector<std::string>& files, const std::string& json) {
  if (!flags.redraw.empty()) return redraw_bundle(flags, files);
  ComparisonPlan plan = plan_of(argv, flags, files);
  if (flags.print_config || flags.dry_run) {
    show_variants(plan, flags);
    return 0;
  }
  check_outputs({{"--json", json}, {"--csv", flags.csv}, {"--picture", flags.picture}});
  Player player(plan, flags, json);
  const int stopped = player.play();
  const AbComparison& c = plan.comparison;
  const AbSummary summary = summarize(c);
  const int unwritten =
      write_each(std::vector<TextFile>{{json, [&] { return ab_json(c, summary); }},
                                       {flags.csv, [&] { return ab_csv(c); }},
                                       {flags.picture, [&] { return ab_svg(c, summary); }}});
  if (unwritten == 0) player.result_saved();
  if (!flags.quiet && json != "-" && flags.csv != "-")
    std::fputs(ab_text(c, summary, paint_for(STDOUT_FILENO)).c_str(), stdout);
  if (stopped != 0) {
    failed(c.interrupted);
    return stopped;
  }
  const int status = outcome_of(plan, flags, summary);
  return unwritten != 0 ? unwritten : status;
}

}  // namespace ghostrank
