#include "emulator/several_jobs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "emulator/result/figures.h"
#include "profiles/error.h"
#include "profiles/job/key_error.h"
#include "profiles/planners/background/background.h"

namespace ghostrank {
namespace {

// Passes on what it hears once `on` is set.
class Relay final : public Observer {
 public:
  explicit Relay(Observer& to) : to_(to) {}
  bool on = false;

  void on_start(const Result& result) override {
    if (on) to_.on_start(result);
  }
  void on_play(int iterations, bool measured) override {
    if (on) to_.on_play(iterations, measured);
  }
  void on_iteration(int index, const IterationReport& report) override {
    if (on) to_.on_iteration(index, report);
  }
  void on_progress(double fraction, double wall_seconds) override {
    if (on) to_.on_progress(fraction, wall_seconds);
  }
  void on_dilation(double from, double to, const std::string& why) override {
    if (on) to_.on_dilation(from, to, why);
  }

 private:
  Observer& to_;
};

constexpr double kSlack = 1.25;  // the others may make a job slower, and its last iteration later
constexpr double kMostKeptIterations = 1e7;  // of a job, kept in memory
constexpr double kAlike = 1e-9;  // ends that differ by less, relatively, are at the same time

std::uint32_t at_most(double iterations, const std::string& job) {
  if (iterations > kMostKeptIterations)
    throw KeyError(
        "jobs",
        "jobs: while the others are measured, job " + job +
            " would play more than 10,000,000 iterations; give it longer steps, or play fewer "
            "run.iterations");
  return static_cast<std::uint32_t>(iterations);
}

double end_of(const std::vector<IterationReport>& iterations, std::size_t count) {
  double end = 0;
  for (std::size_t i = 0; i < std::min(count, iterations.size()); ++i) end += iterations[i].seconds;
  return end;
}

// Adds to the result of all what the play of one job alone says about itself: the time alone is as
// good as that play was.
void judge_also(const Result& alone, const std::string& job, Result& all) {
  if (!alone.interrupted.empty()) return;
  const std::string who = "job " + job + " alone: ";
  const Fidelity& own = alone.fidelity;
  Fidelity& f = all.fidelity;
  for (double Fidelity::*const worst :
       {&Fidelity::lateness_us_p50, &Fidelity::lateness_us_p99, &Fidelity::lateness_us_max,
        &Fidelity::critical_lateness, &Fidelity::rate_error, &Fidelity::run_queue_wait,
        &Fidelity::loop_busy, &Fidelity::throttled, &Fidelity::queued})
    f.*worst = std::max(f.*worst, own.*worst);
  f.faithful &= own.faithful;
  if (!own.faithful) f.reason += (f.reason.empty() ? "" : "; ") + who + own.reason;
  std::erase_if(f.valid_for, [&](const std::string& use) {
    return std::ranges::find(own.valid_for, use) == own.valid_for.end();
  });
  for (const std::string& note : alone.notes)
    if (std::ranges::find(all.notes, note) == all.notes.end()) all.notes.push_back(who + note);
  for (const StallReport& stall : alone.stalls) {
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "nothing moved for %.1f s from %.1f s on, wall",
                  stall.wall_seconds, stall.wall_start_s);
    all.notes.push_back(who + text.data());
  }
}

// The jobs as far as each has played alone; empty if none was measured.
std::vector<JobReport> jobs_alone(const std::vector<Result>& alone) {
  std::vector<JobReport> jobs;
  for (const Result& one : alone)
    if (jobs.empty()) jobs = one.jobs;  // every play names all jobs
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (!alone[j].jobs.empty()) jobs[j] = alone[j].jobs[j];
    jobs[j].iterations.clear();
  }
  return jobs;
}

// Whether streams of the job outlive its iterations. Then its first iteration has nothing carried
// into it, and is not measured if there are others.
bool carries(const Workload& workload, std::size_t job) {
  return std::ranges::any_of(workload.roles, [&](const Role& role) {
    return role.job == job && std::ranges::any_of(role.iterations, [](const Program& program) {
             return carries_over(program);
           });
  });
}

void leave_out_first(std::vector<IterationReport>& iterations) {
  if (iterations.size() > 1) iterations.erase(iterations.begin());
}

void stop(const std::string& why, Result& result) {
  result.interrupted = why;
  result.fidelity.faithful = false;
  result.fidelity.reason = why;
}

}  // namespace

std::vector<std::uint32_t> iterations_together(const std::vector<WorkloadJob>& jobs,
                                               const std::vector<double>& alone,
                                               const std::vector<std::uint32_t>& asked) {
  double longest = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) longest = std::max(longest, alone[j] * asked[j]);
  std::vector<std::uint32_t> out;
  for (std::size_t j = 0; j < jobs.size(); ++j)
    out.push_back(at_most(std::ceil(kSlack * longest / alone[j]) + 1, jobs[j].name));
  return out;
}

std::optional<std::vector<std::uint32_t>> cut_or_extend(std::vector<JobReport>& jobs,
                                                        const std::vector<std::uint32_t>& asked) {
  double all_ended = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j)
    all_ended = std::max(all_ended, end_of(jobs[j].iterations, asked[j]));
  std::vector<std::uint32_t> more;
  bool extend = false;
  for (const JobReport& job : jobs) {
    const double had = static_cast<double>(job.iterations.size()),
                 end = end_of(job.iterations, job.iterations.size());
    const bool short_of = end < all_ended * (1 - kAlike);
    extend |= short_of;
    more.push_back(
        at_most(short_of ? std::ceil(kSlack * had * all_ended / end) + 1 : had, job.name));
  }
  if (extend) return more;
  for (JobReport& job : jobs) {
    std::size_t measured = 0;
    for (double end = 0; measured < job.iterations.size(); ++measured) {
      end += job.iterations[measured].seconds;
      if (end > all_ended * (1 + kAlike)) break;
    }
    job.iterations.resize(measured);
  }
  return std::nullopt;
}

Result play_jobs(const LoadedJob& job, const Workload& workload, Control& control,
                 const RunOptions& options, Observer& observer, Phase phase) {
  Relay relay(observer);
  Session session(job, workload, control, options, relay);
  const std::size_t jobs = workload.jobs.size();
  std::vector<Result> alone(jobs);
  // Returns why the run was stopped meanwhile; empty: it was not. One iteration more than is
  // measured: streams that outlive their iteration make the last longer.
  const auto play_alone = [&](std::size_t j, std::size_t iterations) {
    phase.job = static_cast<int>(j);
    phase.of_job.assign(jobs, static_cast<std::uint32_t>(iterations + 1));
    Result played = session.play(phase);
    played.iterations.resize(std::min(played.iterations.size(), iterations));
    const std::string why = played.interrupted;
    if (played.iterations.size() >= alone[j].iterations.size()) alone[j] = std::move(played);
    return why;
  };
  std::vector<std::uint32_t> of_each(jobs, phase.iterations);
  for (std::size_t j = 0; j < jobs; ++j) of_each[j] += carries(workload, j) ? 1 : 0;
  std::vector<std::uint32_t> asked = of_each;
  if (has_background_beside(job.spec)) asked.back() = 0;
  // Adds to what all played together, as far as the run came, what each played alone.
  const auto finish = [&](Result result) {
    if (result.jobs.empty()) result.jobs = jobs_alone(alone);
    for (std::size_t j = 0; j < result.jobs.size(); ++j) {
      result.jobs[j].alone = std::move(alone[j].iterations);
      if (!carries(workload, j)) continue;
      leave_out_first(result.jobs[j].alone);
      leave_out_first(result.jobs[j].iterations);
    }
    result.iterations.clear();
    if (!result.jobs.empty()) result.iterations = result.jobs.front().iterations;
    std::vector<Figure>& figures = result.fidelity.figures;
    if (result.iterations.empty()) figures.clear();
    for (std::size_t j = 0; j < result.jobs.size(); ++j) {
      JobReport& own = result.jobs[j];
      if (asked[j] == 0 && !own.iterations.empty())  // it may have had time for fewer
        own.alone.resize(std::min(own.alone.size(), own.iterations.size()));
      judge_also(alone[j], own.name, result);
      if (result.fidelity.modelled) continue;
      for (Figure& figure : job_figures(own)) figures.push_back(std::move(figure));
    }
    return result;
  };
  std::vector<double> steps(jobs);
  for (std::size_t j = 0; j < jobs; ++j) {
    if (!play_alone(j, of_each[j]).empty()) {
      Result result = alone[j];
      result.jobs.clear();
      result.notes.push_back("stopped while job " + workload.jobs[j].name +
                             " played alone: traffic and calls are of that play");
      return finish(std::move(result));
    }
    steps[j] = mean_seconds(alone[j].iterations);
    if (steps[j] <= 0)
      throw Error(job.spec.jobs[j].source + ": a step of job " + workload.jobs[j].name +
                  " takes no time; give it a model or programs that compute or send");
  }
  phase.job = kEveryJob;
  phase.of_job =
      with_source(job.spec, [&] { return iterations_together(workload.jobs, steps, asked); });
  relay.on = true;
  Result result = session.play(phase);
  relay.on = false;
  while (result.interrupted.empty()) {
    const auto more = with_source(job.spec, [&] { return cut_or_extend(result.jobs, asked); });
    if (!more) break;
    phase.of_job = *more;
    Result again = session.play(phase);
    if (!again.interrupted.empty() && again.iterations.size() < result.iterations.size())
      stop(again.interrupted, result);
    else
      result = std::move(again);
  }
  for (std::size_t j = 0; j < jobs && result.interrupted.empty(); ++j) {
    const std::size_t measured = result.jobs[j].iterations.size();
    if (measured <= of_each[j]) continue;
    if (const std::string why = play_alone(j, measured); !why.empty()) stop(why, result);
  }
  return finish(std::move(result));
}

}  // namespace ghostrank
