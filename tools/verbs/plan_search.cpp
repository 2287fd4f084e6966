#include "tools/verbs/plan_search.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/estimate/step_estimate.h"
#include "profiles/median.h"
#include "profiles/model/model.h"
#include "profiles/planners/plan.h"
#include "tools/quiet_play.h"
#include "tools/report/files/output_files.h"
#include "tools/report/json/json.h"
#include "tools/search/plan_search.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

double seconds_of(Picoseconds time) { return static_cast<double>(time) * 1e-12; }

// The step of the job with these settings. Its fabric is virtual.
double played_step(JobFlags flags, const std::vector<std::string>& settings) {
  flags.overrides.insert(flags.overrides.end(), settings.begin(), settings.end());
  LoadedJob job = load(flags);
  job.spec.device.memory_bytes = 0;  // the job's own plan may need more
  job.spec = with_medians(std::move(job.spec));
  job.spec.run.end = {};  // without chance a step is like the next
  const Result result = play_quietly(job, in_steady_state(plan_workload(job.spec)));
  std::vector<double> all;
  for (const IterationReport& iteration : result.iterations) all.push_back(iteration.seconds);
  return median(std::move(all));
}

// Played step times; empty: not played.
struct Played {
  std::vector<std::optional<double>> best;  // as PlanSearch::best
  std::optional<double> own;
};

// Plays the first plans, and sorts them by the played step times. Plays the job's own plan, too, so
// that it can be compared with the first one.
Played play(const JobFlags& flags, const LoadedJob& job, int plays, bool quiet,
            PlanSearch& search) {
  Played played;
  played.best.resize(search.best.size());
  const std::size_t number = std::min(search.best.size(), static_cast<std::size_t>(plays));
  std::multimap<double, PlanFound> in_order;
  for (std::size_t i = 0; i < number; ++i) {
    Patience playing("playing plan " + std::to_string(i + 1) + " of " + std::to_string(number),
                     !quiet);
    in_order.emplace(played_step(flags, settings_of(job.spec, search.best[i].choice)),
                     search.best[i]);
  }
  std::size_t index = 0;
  for (const auto& [step, plan] : in_order) {
    played.best[index] = step;
    search.best[index++] = plan;
  }
  if (number == 0 || !search.own) return played;
  const std::vector<std::string> own = settings_of(job.spec, search.own->choice);
  for (std::size_t i = 0; i < number; ++i)
    if (settings_of(job.spec, search.best[i].choice) == own) played.own = played.best[i];
  if (!played.own) {
    Patience playing("playing the job's own plan", !quiet);
    played.own = played_step(flags, {});
  }
  return played;
}

// Why a plan takes longer than the first: what it computes more, or what it waits more. By the
// played steps if both were played, else by the estimates.
std::string why_not(const PlanFound& first, std::optional<double> first_played,
                    const PlanFound& plan, std::optional<double> played) {
  const Picoseconds longer = played && first_played ? std::llround((*played - *first_played) * 1e12)
                                                    : plan.step - first.step;
  const Picoseconds computes = plan.compute - first.compute;
  const Picoseconds waits = longer - computes;
  if (computes <= 0 && waits <= 0) return "";
  return computes > waits ? "computes " + humane_seconds(seconds_of(computes)) + " longer"
                          : "waits " + humane_seconds(seconds_of(waits)) + " longer";
}

std::string behind(const PlanFound& plan) {
  return humane_percent(1 - static_cast<double>(plan.compute) / static_cast<double>(plan.step));
}

// The table, which has a row for each plan, with the plans' times beside.
std::string with_times(Table table, const PlanSearch& search,
                       const std::vector<std::optional<double>>& steps) {
  const bool any_played = std::any_of(steps.begin(), steps.end(), [](const auto& s) { return s; });
  table.columns.push_back({"step", Align::right});
  table.columns.push_back({"waits", Align::right});
  if (any_played) table.columns.push_back({"played", Align::right});
  table.columns.push_back({"behind the first"});
  for (std::size_t i = 0; i < search.best.size(); ++i) {
    const PlanFound& plan = search.best[i];
    std::vector<std::string>& row = table.rows[i];
    row.push_back(humane_seconds(seconds_of(plan.step)));
    row.push_back(behind(plan));
    if (any_played) row.push_back(steps[i] ? humane_seconds(*steps[i]) : "");
    row.push_back(i == 0 ? "" : why_not(search.best.front(), steps.front(), plan, steps[i]));
  }
  return render(table);
}

// The table for frameworks that spread whole models over data-parallel ranks.
std::string spread_table_of(const PlanSearch& search,
                            const std::vector<std::optional<double>>& steps) {
  Table table{{{"framework"},
               {"models", Align::right},
               {"units after forward"},
               {"recompute"},
               {"weights", Align::right},
               {"gradients", Align::right},
               {"optimizer", Align::right},
               {"activations", Align::right},
               {"memory", Align::right}},
              {}};
  for (const PlanFound& plan : search.best) {
    const bool fsdp = plan.choice.framework == Framework::fsdp;
    std::vector<std::string> row{std::string(name_of(plan.choice.framework)),
                                 fsdp ? std::to_string(plan.choice.replicate) : "",
                                 !fsdp                             ? ""
                                 : plan.choice.reshard == "always" ? "freed"
                                                                   : "kept",
                                 fsdp ? name_of(plan.choice.recompute) : ""};
    if (const auto& m = plan.memory) {
      for (const double bytes :
           {m->weights, m->gradients, m->optimizer, m->activations, m->total()})
        row.push_back(humane_bytes(bytes));
    } else {
      row.resize(row.size() + 5, "unknown");
    }
    table.rows.push_back(std::move(row));
  }
  return with_times(std::move(table), search, steps);
}

std::string table_of(const LoadedJob& job, const PlanSearch& search,
                     const std::vector<std::optional<double>>& steps) {
  const Framework framework = job.spec.parallel.framework;
  const bool titan = framework == Framework::torchtitan;
  if (framework != Framework::megatron && !titan) return spread_table_of(search, steps);
  const bool context = job.spec.parallel.cp > 1,
             experts = job.spec.model->transformer->experts.count > 0;
  Table table{{{"tp", Align::right}, {"pp", Align::right}, {"dp", Align::right}}, {}};
  const auto column = [&](const char* name, bool shown = true, Align align = Align::right) {
    if (shown) table.columns.push_back({name, align});
  };
  column("cp", context);
  column("ep", experts);
  column("chunks");
  column("micro-batch");
  column("recompute", true, Align::left);
  column("optimizer", !titan, Align::left);
  column("models", titan);
  column("memory");
  for (const PlanFound& plan : search.best) {
    const PlanChoice& c = plan.choice;
    std::vector<std::string> row{std::to_string(c.tp), std::to_string(c.pp),
                                 std::to_string(plan.dp)};
    if (context) row.push_back(std::to_string(c.cp));
    if (experts) row.push_back(std::to_string(c.ep));
    row.push_back(std::to_string(c.interleave));
    row.push_back(std::to_string(c.micro_batch));
    row.push_back(name_of(c.recompute));
    row.push_back(titan ? std::to_string(c.replicate) : c.sharded_optimizer ? "sharded" : "whole");
    row.push_back(humane_bytes(plan.memory->total()));
    table.rows.push_back(std::move(row));
  }
  return with_times(std::move(table), search, steps);
}

// The job's own plan beside the first: both played, or both estimated.
std::string own_of(const LoadedJob& job, const PlanSearch& search, const Played& played) {
  if (!search.own) return "the job's own plan cannot be estimated\n";
  const PlanFound &own = *search.own, &first = search.best.front();
  const double step = played.own ? *played.own : seconds_of(own.step);
  const double least = played.own ? *played.best.front() : seconds_of(first.step);
  std::string text = "the job's own plan takes " + humane_seconds(step) + ", " +
                     significant(step / least, 3) + " times the first";
  const std::string why = why_not(first, played.best.front(), own, played.own);
  if (!why.empty()) text += ": it " + why;
  if (job.spec.device.memory_bytes > 0 && own.memory &&
      own.memory->total() > job.spec.device.memory_bytes)
    text += "; it needs " + humane_bytes(own.memory->total()) + " of a GPU";
  return text + "\n";
}

std::string text_of(const LoadedJob& job, const PlanSearch& search, const Played& played) {
  const auto count = [](std::size_t n) { return humane_count(static_cast<double>(n)); };
  std::string text = table_of(job, search, played.best) + "\n";
  text += count(search.looked_at) + " plans: " + count(search.illegal) +
          " do not fit the model, the cluster or the batch";
  if (search.too_large > 0)
    text += ", " + count(search.too_large) + " need more than the " +
            humane_bytes(job.spec.device.memory_bytes) + " of a GPU";
  if (search.left_out > 0)
    text += ", " + count(search.left_out) + " take longer by their compute and bubble alone";
  text += ", " + count(search.estimated) + " were estimated\n";
  if (job.spec.cluster.topology.kind != TopologySpec::Kind::nonblocking)
    text +=
        "links: estimates share them among calls, not message by message; play plans that come "
        "near\n";
  if (job.spec.device.memory_bytes <= 0)
    text += "memory is not checked: device.memory_bytes is 0\n";
  else if (!search.best.front().memory)
    text += "memory is not checked: a model of measured layers says nothing of its activations\n";
  std::string settings;
  for (const std::string& setting : settings_of(job.spec, search.best.front().choice))
    settings += " -s " + setting;
  return text + own_of(job, search, played) + "the first:" + settings + "\n";
}

Json json_of(const std::optional<GpuMemory>& memory) {
  if (!memory) return nullptr;
  return {{"weights", memory->weights},
          {"gradients", memory->gradients},
          {"optimizer", memory->optimizer},
          {"activations", memory->activations}};
}

Json json_of(const JobSpec& job, const PlanFound& plan, const std::optional<double>& played) {
  const PlanChoice& c = plan.choice;
  return {{"framework", name_of(c.framework)},
          {"tp", c.tp},
          {"pp", c.pp},
          {"dp", plan.dp},
          {"cp", c.cp},
          {"ep", c.ep},
          {"interleave", c.interleave},
          {"micro_batch", c.micro_batch},
          {"recompute", name_of(c.recompute)},
          {"sharded_optimizer", c.sharded_optimizer},
          {"replicate", c.replicate},
          {"reshard_after_forward", c.reshard},
          {"memory_bytes", plan.memory ? Json(plan.memory->total()) : Json(nullptr)},
          {"memory", json_of(plan.memory)},
          {"step_seconds", seconds_of(plan.step)},
          {"compute_seconds", seconds_of(plan.compute)},
          {"settings", settings_of(job, c)},
          {"played_seconds", played ? Json(*played) : Json(nullptr)}};
}

std::string json_of(const LoadedJob& job, const PlanSearch& search, const Played& played) {
  Json plans = Json::array();
  for (std::size_t i = 0; i < search.best.size(); ++i)
    plans.push_back(json_of(job.spec, search.best[i], played.best[i]));
  const Json json{{"schema", "ghostrank/search/1"},
                  {"looked_at", search.looked_at},
                  {"illegal", search.illegal},
                  {"too_large", search.too_large},
                  {"left_out", search.left_out},
                  {"estimated", search.estimated},
                  {"own", search.own ? json_of(job.spec, *search.own, played.own) : Json(nullptr)},
                  {"plans", std::move(plans)}};
  return json.dump(2) + "\n";
}

}  // namespace

void show_search(JobFlags flags, const SearchFlags& wanted, const std::string& json, bool quiet) {
  flags.overrides.emplace_back("fabric.kind=virtual");  // switches are those of its model
  LoadedJob job = load(flags);
  job.spec = searched(job);
  Patience searching("comparing plans", !quiet);
  PlanSearch search = search_plans(job.spec, static_cast<std::size_t>(wanted.best), wanted.keep);
  searching.end();
  const Played played = play(flags, job, wanted.play, quiet, search);
  if (!json.empty()) write_whole(json, json_of(job, search, played));
  if (!quiet && json != "-") std::fputs(text_of(job, search, played).c_str(), stdout);
}

}  // namespace ghostrank
