// A program that repeats its micro-batches equals the listed one, op by op and label by label.
#include "profiles/planners/pipeline/repeated_program.h"

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "tests/profiles/planners/megatron_support.h"
#include "tests/profiles/planners/titan.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::MegatronJob;
using test::Titan;

// Empty if the programs do the same; else where they first differ.
std::string difference(const Program& a, const Program& b) {
  if (a.stream_names != b.stream_names || a.events != b.events) return "streams or events differ";
  if (a.streams.size() != b.streams.size()) return "numbers of streams differ";
  for (std::size_t s = 0; s < a.streams.size(); ++s) {
    if (workers(a, s) != workers(b, s) || outlives(a, s) != outlives(b, s))
      return "workers of stream " + a.stream_names[s] + " differ, or whether it outlives";
    const OpList &one = a.streams[s], &other = b.streams[s];
    const std::string where = "stream " + a.stream_names[s];
    if (one.size() != other.size())
      return where + " has " + std::to_string(one.size()) + " and " + std::to_string(other.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      Op op = one[i];
      op.label = other[i].label;
      if (!(op == other[i])) return where + " differs at " + std::to_string(i);
      const bool event = op.kind == Op::Kind::record || op.kind == Op::Kind::wait;
      if (!event && label_of(a, s, i) != label_of(b, s, i))
        return where + ": " + label_of(a, s, i) + " is " + label_of(b, s, i);
    }
  }
  return "";
}

// Compares plans short enough to be listed with what prolonged() makes of three shorter plans.
void expect_repeats(const std::string& what, int stages, int period,
                    const std::function<Workload(int micro_batches)>& plan) {
  const int first = kRounds * stages;
  const Workload one = plan(first), two = plan(first + period), three = plan(first + 2 * period);
  for (const int periods : {3, 4, 7}) {
    const Workload listed = plan(first + periods * period);
    for (std::size_t role = 0; role < listed.roles.size(); ++role) {
      const Program& program = listed.roles[role].iterations[0];
      ASSERT_EQ(program.streams[0].body().size, 0u) << what << ": not listed";
      const auto made =
          prolonged(one.roles[role].iterations[0], two.roles[role].iterations[0],
                    three.roles[role].iterations[0], static_cast<std::uint64_t>(periods));
      ASSERT_TRUE(made) << what << " does not repeat";
      ASSERT_EQ(difference(*made, program), "") << what << ", " << listed.roles[role].name;
      EXPECT_GT(made->streams[0].body().size, 0u);
    }
  }
}

struct Case {
  const char* schedule;
  int stages, period;
  const char* more;
  const char* recompute = "none";
};
constexpr Case kMegatron[] = {
    {"1f1b", 1, 1, ""},
    {"1f1b", 4, 1, "", "full"},
    {"interleaved", 4, 4, ", interleave: 2, overlap_grad_reduce: true, overlap_param_gather: true"},
    {"dualpipe", 4, 2, ""},
    {"zb-h1", 4, 1, ""},
    {"zbv", 4, 1, ""},
    {"dualpipev", 4, 1, ""}};

MegatronJob megatron(const Case& c, int micro_batches) {
  return {.tp = 2,
          .pp = c.stages,
          .dp = 2,
          .micro_batches = micro_batches,
          .sequence = true,
          .sharded = true,
          .recompute = c.recompute,
          .more = std::string(", schedule: ") + c.schedule + c.more};
}

TEST(RepeatedProgram, IsTheListedOneOfEveryMegatronSchedule) {
  for (const Case& c : kMegatron)
    expect_repeats(std::string(c.schedule) + c.more, c.stages, c.period,
                   [&](int micro_batches) { return megatron(c, micro_batches).workload(); });
}

// Independent of prolonged(): a long program has the passes of pipeline_slots(), in their order.
TEST(RepeatedProgram, OfALongPipelineHasThePassesOfItsSchedule) {
  for (const Case& c : kMegatron) {
    Pipeline pipeline{c.schedule, c.stages, pipeline_chunks(c.schedule, 2)};
    pipeline.micro_batches = 24 * c.stages + 6 * c.period;
    const Workload workload = megatron(c, pipeline.micro_batches).workload();
    for (int stage = 0; stage < c.stages; ++stage) {
      const Program& program = workload.roles[static_cast<std::size_t>(stage)].iterations[0];
      ASSERT_GT(program.streams[0].body().times, 1u) << c.schedule;
      std::vector<std::string> expected, passes;  // equal neighbours count once
      const auto add = [](std::vector<std::string>& to, const std::string& pass) {
        if (to.empty() || to.back() != pass) to.push_back(pass);
      };
      for (const Slot& slot : pipeline_slots(pipeline, stage))
        add(expected,
            "FBIW"[static_cast<std::size_t>(slot.pass)] + std::to_string(slot.micro_batch));
      for (std::size_t i = 0; i < program.streams[0].size(); ++i) {
        if (program.streams[0][i].kind != Op::Kind::compute) continue;
        const std::string label = label_of(program, 0, i);
        if (label != "optimizer") add(passes, label.substr(0, label.find(' ')));
      }
      EXPECT_EQ(passes, expected) << c.schedule << ", stage " << stage;
    }
  }
}

// The memory of a program does not depend on the number of its repetitions.
TEST(RepeatedProgram, TakesNoMemoryPerMicroBatch) {
  const auto bytes = [](int micro_batches) {
    const Workload workload = megatron(kMegatron[1], micro_batches).workload();
    std::size_t sum = 0;
    for (const Role& role : workload.roles) {
      for (const OpList& ops : role.iterations[0].streams) sum += ops.occupied_bytes();
      sum += role.iterations[0].labels.size();
    }
    return sum;
  };
  EXPECT_EQ(bytes(1'000), bytes(1'000'000));
}

TEST(RepeatedProgram, IsTheListedOneOfTorchTitan) {
  struct Titans {
    const char* more;
    int stages, period;
  };
  for (const Titans& c :
       {Titans{", pp: 2", 2, 1}, Titans{", pp: 2, reshard_after_forward: always", 2, 1},
        Titans{", pp: 2, schedule: zbv", 2, 1}, Titans{", pp: 2, schedule: dualpipev", 2, 1},
        Titans{", pp: 2, schedule: interleaved", 2, 2}})
    expect_repeats(c.more, c.stages, c.period, [&](int micro_batches) {
      return Titan{.gpus = 4, .global_batch = 2 * micro_batches, .more = c.more}.workload();
    });
}

}  // namespace
}  // namespace ghostrank
