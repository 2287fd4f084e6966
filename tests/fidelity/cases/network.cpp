// The models of the network beside one another, in virtual time: collectives alone beside closed
// forms, contended calls as flows beside the same calls packet by packet. Needs no lab.
#include <cstdio>

#include "tests/emulator/network/contended.h"
#include "tests/fidelity/cases.h"

namespace ghostrank::fidelity {
namespace {

using testing::Queues;

constexpr std::uint64_t kLoneBytes = 4'000'000;
constexpr double kMostAlone = 0.001, kMostContended = 0.05;

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", seconds * 1e6);
  return text;
}
std::string exact_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.3f %%", 100 * share);
  return text;
}

double seconds_of(const Result& result) { return result.iterations.at(0).seconds; }
// How long ranks wait for their calls, on average: it tells what the end of the last call hides.
double wait_of(const Result& result) {
  const IterationReport& i = result.iterations.at(0);
  return i.exposed_comm_seconds + i.bubble_seconds;
}

void compare_alone(Findings& out) {
  std::vector<Row> rows{
      {"alone, 8 ranks", "closed form µs", "`loggp`", "`flow`", "in packets µs", "`packet`"}};
  for (const testing::LoneCollective& lone : testing::lone_collectives()) {
    Row row{lone.name};
    for (const NetworkModel model :
         {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
      const double form = testing::closed_form(lone, model, kLoneBytes);
      const double played = seconds_of(testing::lone_job(lone, model, kLoneBytes).run());
      if (model != NetworkModel::flow) row.push_back(microseconds(form));
      row.push_back(exact_percent(hold(out, lone.name, played, form, kMostAlone)));
    }
    rows.push_back(row);
  }
  out.markdown += markdown_table(rows);
}

struct Lost {
  std::uint64_t drops = 0, marks = 0, pauses = 0;
};
Lost lost_in(const Result& result) {
  Lost sum;
  for (const LinkTier& tier : result.network->tiers) {
    sum.drops += tier.queue->drops;
    sum.marks += tier.queue->marks;
    sum.pauses += tier.queue->pauses;
  }
  return sum;
}

void compare_contended(Findings& out, double scale) {
  std::vector<Row> rows{{"contended", "`flow` µs", "fair queues µs", "`flow` is off", "waits",
                         "pauses alone µs", "`flow` is off", "waits", "pauses", "DCQCN µs",
                         "`flow` is off", "waits", "marks", "pauses"}};
  for (const testing::ContendedCase& one : testing::contended_cases()) {
    const auto play = [&](NetworkModel model, Queues queues) {
      return testing::contended_job(one, model, queues, scale).run();
    };
    const Result flow = play(NetworkModel::flow, Queues::fair);
    const Result fair = play(NetworkModel::packet, Queues::fair);
    hold(out, one.name, seconds_of(flow), seconds_of(fair), kMostContended);
    Row row{one.name, microseconds(seconds_of(flow))};
    const auto add = [&](const Result& packets) {
      row.push_back(microseconds(seconds_of(packets)));
      row.push_back(percent(seconds_of(flow) / seconds_of(packets) - 1));
      row.push_back(percent(wait_of(flow) / wait_of(packets) - 1));
      if (lost_in(packets).drops > 0) out.misses.push_back(one.name + ": packets were lost");
    };
    add(fair);
    const Result pauses = play(NetworkModel::packet, Queues::pauses);
    add(pauses);
    row.push_back(std::to_string(lost_in(pauses).pauses));
    const Result dcqcn = play(NetworkModel::packet, Queues::dcqcn);
    add(dcqcn);
    row.push_back(std::to_string(lost_in(dcqcn).marks));
    row.push_back(std::to_string(lost_in(dcqcn).pauses));
    std::fputs(report::markdown_line(row).c_str(), stderr);
    rows.push_back(std::move(row));
  }
  out.markdown += "\n" + markdown_table(rows);
}

}  // namespace

Findings compare_networks(const Options& options) {
  Findings out;
  compare_alone(out);
  compare_contended(out, options.quick ? 0.25 : 1);
  return out;
}

}  // namespace ghostrank::fidelity
