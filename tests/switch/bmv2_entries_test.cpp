// The commands that tell bmv2 of jobs, on a stand-in for its command line with handles of its own:
// all entries that a job needs are there, and nothing is left of a removed job.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "switch/bmv2/entries.h"
#include "tests/switch/support.h"

namespace ghostrank::bmv2 {
namespace {

using switchml::Allocation;
using switchml::JobPlan;
using switchml::JobResources;
using switchml::SwitchPlan;
using switchml::Tables;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CommandLine {
 public:
  std::string run(const std::vector<std::string>& commands) {
    std::string answers = "Obtaining JSON from switch...\nDone\n";
    for (const std::string& command : commands) answers += "RuntimeCmd: " + answer(command);
    return answers;
  }

  std::map<std::string, std::string> entries;           // handle, table and row
  std::map<std::string, std::set<std::string>> groups;  // number, nodes
  std::map<std::string, std::string> nodes;             // handle, replica and ports
  std::map<std::string, std::string> registers;
  int accepted = -1;  // commands until one is refused; -1: none is

 private:
  std::string answer(const std::string& command) {
    if (accepted-- == 0) return "Invalid table operation (TABLE_FULL)\n";
    std::istringstream in(command);
    std::string verb, a, b, rest;
    in >> verb >> a >> b;
    std::getline(in, rest);
    const std::string handle = std::to_string(next_);
    if (verb == "table_add") {
      next_ -= 7;
      EXPECT_TRUE(entries.emplace(handle, a + " " + b + rest).second);
      return "Adding entry to exact match table " + a + "\nmatch key: EXACT-00:00:00:09\n" +
             "Entry has been added with handle " + handle + "\n";
    }
    if (verb == "mc_node_create") {
      next_ -= 7;
      EXPECT_TRUE(nodes.emplace(handle, a + " " + b + rest).second);
      return "Creating node with rid " + a + "\nnode was created with handle " + handle + "\n";
    }
    if (verb == "table_delete") {
      EXPECT_TRUE(entries.at(b).starts_with(a + " "));
      entries.erase(b);
    } else if (verb == "mc_mgrp_create") {
      EXPECT_TRUE(groups.emplace(a, std::set<std::string>{}).second);
    } else if (verb == "mc_mgrp_destroy") {
      EXPECT_THAT(groups.at(a), IsEmpty());
      groups.erase(a);
    } else if (verb == "mc_node_associate") {
      EXPECT_TRUE(nodes.contains(b));
      EXPECT_TRUE(groups.at(a).insert(b).second);
    } else if (verb == "mc_node_dissociate") {
      EXPECT_EQ(groups.at(a).erase(b), 1u);
    } else if (verb == "mc_node_destroy") {
      for (const auto& [number, group] : groups) EXPECT_FALSE(group.contains(a));
      EXPECT_EQ(nodes.erase(a), 1u);
    } else {
      EXPECT_EQ(verb, "register_write") << command;
      registers[a + " " + b] = rest;
    }
    return "\n";
  }

  int next_ = 1'000'000;
};

Handles set_up(CommandLine& bmv2, const Setup& setup) {
  Handles handles = handles_in(bmv2.run(commands_to_add(setup)));
  bmv2.run(commands_to_join(setup, handles));
  return handles;
}

SwitchPlan plan_of(int ports) {
  SwitchPlan plan;
  plan.ports = ports;
  for (int p = 0; p < ports; ++p)
    plan.forward.push_back({{2, 0, 0, 0, 0, static_cast<std::uint8_t>(p)}, p});
  return plan;
}

JobPlan job_of(const std::string& name, int first_slot, int slots) {
  JobPlan job;
  job.name = name;
  job.elements = 64;
  job.first_slot = first_slot;
  job.slots = slots;
  for (int w = 0; w < 3; ++w) {
    switchml::Worker worker;
    worker.port = w;
    worker.ip = 0x0a000001u + static_cast<std::uint32_t>(w);
    job.workers.push_back(worker);
  }
  return job;
}

TEST(Bmv2Entries, ForwardAndFloodFromTheStart) {
  SwitchPlan plan = plan_of(3);
  plan.loss = {{.ingress = 9, .egress = 0}, {}, {.ingress = 0, .egress = 7}};
  CommandLine bmv2;
  set_up(bmv2, setup_of_plan(plan));
  EXPECT_THAT(bmv2.entries, SizeIs(3));
  ASSERT_THAT(bmv2.groups, SizeIs(1));
  ASSERT_THAT(bmv2.groups.begin()->second, SizeIs(1));
  EXPECT_EQ(bmv2.nodes.begin()->second, "0 0 1 2");
  EXPECT_EQ(bmv2.registers.at("Switch.probability 0"), " 9");
  EXPECT_EQ(bmv2.registers.at("Copy.probability 2"), " 7");
  EXPECT_THAT(bmv2.registers, SizeIs(4));  // and the dice of both
}

TEST(Bmv2Entries, LeaveNothingOfAJobThatIsRemoved) {
  const SwitchPlan plan = plan_of(3);
  CommandLine bmv2;
  set_up(bmv2, setup_of_plan(plan));
  const auto entries = bmv2.entries;
  Allocation allocation(64, 1024, true);
  struct Job {
    bmv2::Setup setup;
    Handles handles;
  };
  const auto admit = [&](const JobPlan& job) {
    bmv2::Setup setup = setup_of_job(plan, tables_of(job, allocation.admit(job)));
    Handles handles = set_up(bmv2, setup);
    return Job{std::move(setup), std::move(handles)};
  };
  const Job first = admit(job_of("first", 0, 4));
  const auto with_first = bmv2.entries;
  const auto groups = bmv2.groups;
  const Job second = admit(job_of("second", 4, 2));
  EXPECT_GE(bmv2.entries.size(), with_first.size() + 2 * 2 * 3);  // two sets of each slot
  for (const auto& [number, nodes] : bmv2.groups)
    EXPECT_THAT(nodes, ::testing::Not(IsEmpty())) << number;
  bmv2.run(commands_to_remove(second.setup, second.handles));
  EXPECT_EQ(bmv2.entries, with_first);
  EXPECT_EQ(bmv2.groups, groups);
  bmv2.run(commands_to_remove(first.setup, first.handles));
  EXPECT_EQ(bmv2.entries, entries);
  EXPECT_THAT(bmv2.groups, SizeIs(1));
  EXPECT_THAT(bmv2.nodes, SizeIs(1));
}

// Any one of the commands to add or to join may be refused.
TEST(Bmv2Entries, AreTakenBackWhereOneIsRefused) {
  const SwitchPlan plan = plan_of(3);
  CommandLine bmv2;
  set_up(bmv2, setup_of_plan(plan));
  const auto entries = bmv2.entries;
  const auto nodes = bmv2.nodes;
  const auto groups = bmv2.groups;
  Allocation allocation(64, 1024, true);
  const JobPlan job = job_of("job", 0, 2);
  const bmv2::Setup setup = setup_of_job(plan, tables_of(job, allocation.admit(job)));
  const std::vector<std::string> adding = commands_to_add(setup);
  int refused = 0;
  for (bool all = false; !all; ++refused) {
    SCOPED_TRACE(refused);
    bmv2.accepted = refused;
    const std::string added = bmv2.run(adding);
    std::vector<std::string> joining, undoing;
    std::string joined;
    if (refusal_in(added).empty()) {
      joining = commands_to_join(setup, handles_in(added));
      joined = bmv2.run(joining);
      all = refusal_in(joined).empty();
      undoing = commands_to_undo(joining, joined);
    }
    EXPECT_EQ(refusal_in(added + joined), all ? "" : "Invalid table operation (TABLE_FULL)");
    bmv2.accepted = -1;
    bmv2.run(undoing);
    bmv2.run(commands_to_undo(adding, added));
    EXPECT_EQ(bmv2.entries, entries);
    EXPECT_EQ(bmv2.nodes, nodes);
    EXPECT_EQ(bmv2.groups, groups);
  }
  EXPECT_GT(refused, std::ssize(adding));  // joining was refused, too
}

TEST(Bmv2Entries, EmptyTheSlotsOfAJobAlone) {
  const JobPlan job = job_of("job", 0, 4);
  JobResources resources;
  resources.first_slot = 10;
  for (const bool ours : {false, true}) {
    CommandLine bmv2;
    bmv2.run(commands_to_forget(job, resources, ours));
    EXPECT_THAT(bmv2.registers, SizeIs(ours ? 16 : 8));
    EXPECT_EQ(bmv2.registers.at("Switch.marks.marks 20"), " 0");
    EXPECT_EQ(bmv2.registers.at("Switch.marks.marks 27"), " 0");
  }
}

}  // namespace
}  // namespace ghostrank::bmv2
