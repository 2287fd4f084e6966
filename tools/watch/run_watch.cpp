// See run_watch.h.
#include "tools/watch/run_watch.h"

#include <cstdio>
#include <utility>

#include "profiles/load/load.h"
#include "tools/report/result_json.h"
#include "tools/report/run_report.h"
#include "tools/text/humane.h"

namespace ghostrank {

RunWatch::RunWatch(const LoadedJob& job, Result identity, WatchOptions options)
    : job_(job),
      identity_(std::move(identity)),
      options_(std::move(options)),
      setting_up_("setting up the ranks",
                  options_.first && options_.progress == Progress::Mode::live),
      progress_(stderr, options_.progress, job.spec.run.warmup, job.spec.run.iterations,
                job.spec.run.end.ci95) {}

void RunWatch::keep(const std::string& line) {
  const std::string why = kept_.keep(line);
  if (why.empty()) return;
  progress_.clear();
  std::fprintf(stderr, "ghostrank: iterations are no longer kept in %s: %s; the run goes on\n",
               kept_.path().c_str(), why.c_str());
}

void RunWatch::on_start(const Result& started) {
  setting_up_.end();
  if (options_.announce) {
    std::fputs(announcement(job_, started, paint_for(STDERR_FILENO)).c_str(), stderr);
  }
  if (options_.kept_beside.empty()) return;
  kept_.open(options_.kept_beside);
  identity_.hosts = started.hosts;
  identity_.ranks = started.ranks;
  identity_.dilation = started.dilation;
  keep(partial_header(identity_));
}

void RunWatch::on_play(int iterations, bool measured) {
  if (measured) {  // maybe once more
    kept_.empty();
    sample_ = {};
    keep(partial_header(identity_));
  }
  progress_.plays(iterations, measured);
}

void RunWatch::on_iteration(int index, const IterationReport& report) {
  // Of a long run with an open end, a sample: the file grows with the logarithm of their number.
  if (index >= 0 && (!job_.spec.run.end.is_open() || sample_.add(report)))
    keep(partial_iteration(index, report));
  progress_.iteration_ended(index, report.seconds);
}

void RunWatch::on_precision(double half_width) { progress_.knows_mean_to(half_width); }

void RunWatch::on_progress(double fraction, double wall_seconds) {
  progress_.advanced(fraction, wall_seconds);
}

void RunWatch::on_dilation(double from, double to, const std::string& why) {
  identity_.dilation = to;
  if (options_.progress == Progress::Mode::silent) return;
  progress_.clear();
  if (to == from)
    std::fprintf(stderr, "dilation stays at %s: %s\n", significant(to).c_str(), why.c_str());
  else
    std::fprintf(stderr, "dilation %s from %s to %s%s%s\n", to > from ? "raised" : "lowered",
                 significant(from).c_str(), significant(to).c_str(), why.empty() ? "" : ": ",
                 why.c_str());
}

void RunWatch::ended() { progress_.clear(); }

void RunWatch::result_saved() { kept_.remove(); }

}  // namespace ghostrank
