#include "tools/report/jobs_report.h"

#include <utility>

#include "emulator/result/figures.h"
#include "profiles/input/quantity.h"
#include "profiles/planners/background/background.h"
#include "profiles/planners/background/pattern.h"
#include "tools/report/tensor_report.h"
#include "tools/text/humane.h"
#include "tools/text/statistics.h"

namespace ghostrank {
namespace {

std::vector<double> seconds_of(const std::vector<IterationReport>& iterations) {
  std::vector<double> seconds;
  for (const IterationReport& i : iterations) seconds.push_back(i.seconds);
  return seconds;
}

std::string nodes_text(const std::vector<Node>& nodes) {
  std::string text;
  std::vector<int> run;  // ascending
  const auto end_run = [&] {
    text += (text.empty() ? "" : ",") + number_list_text(run);
    run.clear();
  };
  for (const Node node : nodes) {
    if (!run.empty() && node.value() < run.back()) end_run();
    run.push_back(node.value());
  }
  if (!run.empty()) end_run();
  return text;
}

Json time_json(const std::vector<IterationReport>& iterations) {
  const Summary s = summarize(seconds_of(iterations));
  return {{"median", s.median ? Json(*s.median) : Json()},
          {"mean", s.mean ? Json(*s.mean) : Json()},
          {"iterations", iterations.size()}};
}

double mean_of(const std::vector<IterationReport>& iterations, double IterationReport::*field) {
  double sum = 0;
  for (const IterationReport& i : iterations) sum += i.*field;
  return iterations.empty() ? 0 : sum / static_cast<double>(iterations.size());
}

// "incast, permutation"
std::string patterns_text(const std::vector<Background>& background) {
  std::string text;
  for (const Background& one : background)
    text += (text.empty() ? "" : ", ") + name_of(one.pattern);
  return text;
}

}  // namespace

std::string model_text(const JobSpec& spec) {
  std::string model = spec.model_name + ", " + std::string(name_of(spec.parallel.framework)) +
                      (spec.precision.fp8 ? ", fp8 products, " : ", ") +
                      std::string(name_of(spec.precision.gradients)) + " gradients";
  if (spec.program)
    model = (spec.model_name.empty() ? "" : spec.model_name + ", ") +
            (spec.sources.contains("trace") ? "a trace" : "programs of a file");
  if (!spec.device.name.empty()) model += ", on " + spec.device.name;
  return model;
}

std::vector<Fact> job_facts(const JobSpec& spec) {
  std::vector<Fact> facts;
  for (const JobOnNodes& one : spec.jobs) {
    const bool traffic = has_background_beside(spec) && &one == &spec.jobs.back();
    facts.push_back({(traffic ? "" : "job ") + one.name,
                     (traffic ? patterns_text(spec.background)
                              : model_text(*one.job) + "; " + one.job->collectives.library) +
                         "; nodes " + nodes_text(one.nodes)});
  }
  return facts;
}

Table jobs_table(const Result& result) {
  Table table{{{"job"},
               {"nodes"},
               {"ranks", Align::right},
               {"step alone", Align::right},
               {"beside the others", Align::right},
               {"slow-down", Align::right},
               {"iterations", Align::right},
               {"bytes/step", Align::right}},
              {}};
  for (const JobReport& job : result.jobs) {
    const auto known = [&](const char* what, double value, std::string text) {
      return value > 0 && is_valid(result.fidelity.figures, "jobs." + job.name + "." + what)
                 ? std::move(text)
                 : "-";
    };
    const double alone = mean_seconds(job.alone), beside = mean_seconds(job.iterations);
    table.rows.push_back({job.name, job.nodes, humane_count(job.ranks),
                          known("alone.mean", alone, humane_seconds(alone)),
                          known("step_time.mean", beside, humane_seconds(beside)),
                          known("slowdown", job.slowdown(), "x " + significant(job.slowdown())),
                          humane_count(static_cast<double>(job.iterations.size())),
                          humane_bytes(job.wire_bytes_per_iteration)});
  }
  return table;
}

Json jobs_json(const Result& result) {
  Json list = Json::array();
  for (const JobReport& job : result.jobs) {
    const double beside = mean_seconds(job.iterations);
    list.push_back(
        {{"name", job.name},
         {"nodes", job.nodes},
         {"ranks", job.ranks},
         {"step_time", time_json(job.iterations)},
         {"alone", time_json(job.alone)},
         {"slowdown", job.slowdown() > 0 ? Json(job.slowdown()) : Json()},
         {"compute_seconds", mean_of(job.iterations, &IterationReport::compute_seconds)},
         {"exposed_comm_seconds", mean_of(job.iterations, &IterationReport::exposed_comm_seconds)},
         {"exposed_comm_alone", mean_of(job.alone, &IterationReport::exposed_comm_seconds)},
         {"samples_per_second", job.samples_per_iteration > 0 && beside > 0
                                    ? Json(job.samples_per_iteration / beside)
                                    : Json()},
         {"wire_bytes_per_iteration", job.wire_bytes_per_iteration},
         {"messages_per_iteration", job.messages_per_iteration},
         {"tensors", tensors_json(job.tensors)},
         {"compression", compression_json(job.compression)}});
  }
  return list;
}

}  // namespace ghostrank
