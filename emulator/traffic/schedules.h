// The schedules of a job's collectives, made once per distinct (group layout, kind of group,
// function, count or counts, elements, reduction, root, launch) and shared by every rank that plays
// them.
// All are made at the start, because the algorithm that a library chooses for a size decides which
// rows the report has, and every shard of every process must number the rows alike.
//
// Sends and receives have one row per kind of group, so their schedules are made when played. NCCL
// cuts a transfer into messages on several channels; with every other library it is one message.
//
// Threading: one instance per shard; not shared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/exactness.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/ledger.h"
#include "emulator/traffic/step_table.h"

namespace ghostrank {

// The collective that `op` is in a group of `size` members. Throws Error(usage) if the op's counts
// are missing or do not fit the group.
Collective collective_of(const Workload& workload, const Op& op, int size);

// The calls that the op's launch makes in its group, in their order; without a launch the op alone.
std::vector<Op> calls_with(const Workload& workload, const Op& op);

// Whether a send or receive within a kind of group is one message, whoever else is in the group: of
// all libraries but NCCL.
bool is_direct(const JobSpec& spec, const Workload& workload, std::uint16_t kind);

// Whether two sends or receives between the same ranks of a group have the same schedule.
bool are_one_transfer(const Op& a, const Op& b);

class Schedules {
 public:
  // Throws Error(usage) if the library lacks an algorithm for a function of the workload, or cannot
  // do what the job asks.
  Schedules(const JobSpec& spec, const Workload& workload, const Cluster& cluster);

  struct Play {
    std::unique_ptr<const Schedule> schedule;  // of a scheme: the call without steps
    const Algorithm* scheme = nullptr;         // not null: its agents play the call
    std::uint16_t row = 0;
    mutable StepTable steps;  // computed when first asked for

    // Whether a call inside a node may be one delay: not where agents play it, nor where senders
    // wait for permissions, which take time of their own.
    bool can_be_delay() const { return !scheme && !schedule->flow_control().posting.needed(); }
  };
  // The schedule of a collective of the workload.
  const Play& get(std::uint32_t group, const Op& op) const;
  // The schedule of a send or receive between two members of the group (positions).
  std::shared_ptr<const Schedule> transfer(std::uint32_t group, const Op& op, GroupRank source,
                                           GroupRank target) const;
  // is_direct() of a kind of group that has sends and receives.
  bool is_direct(std::uint16_t kind) const;
  // Of a transfer in a communicator of its two ranks, returns a number for their GPUs and whether
  // they share a node; else 0. Transfers with the same number and ranks are alike.
  std::uint32_t pair_of(std::uint32_t group, const Op& op, GroupRank source,
                        GroupRank target) const;
  // The steps of a position, actor by actor; null if the schedule is too large for the table.
  const Step* steps(const Play& play, GroupRank position) {
    return play.steps.of(*play.schedule, position, steps_left_);
  }
  bool can_be_delay(std::uint32_t group, const Op& op) const {
    return get(group, op).can_be_delay();
  }

  // The row that a call really plays, whose closed form applies if it has one.
  const Algorithm& algorithm(std::uint32_t group, const Op& op) const;

  // Rows of the report and the ledger: one per (function, kind of group, algorithm really played).
  struct Row {
    Func func;
    std::uint16_t kind;
    std::string op, group, algorithm;
    Exactness exactness;  // the lowest of the row's calls
  };
  const std::vector<Row>& rows() const { return rows_; }
  // The row that counts the messages of a scheme: that of its first function.
  std::uint16_t row_of(const SchemeUse& use) const;
  // The row of sends and receives within a kind of group.
  std::uint16_t transfer_row(std::uint16_t kind) const { return transfer_row_[kind]; }

 private:
  static constexpr std::size_t kMostTransfers = 4096;

  struct Key {
    std::uint64_t count;  // of a v-variant: index of its counts
    std::uint32_t layout, element_bytes;
    std::int32_t root;
    GroupRank target;  // of a transfer, whose source is the root; else kNoRank
    Func func;
    std::uint16_t kind;
    Reduction reduction;
    bool floats;               // what Op::dtype and Op::floats say of the elements
    std::uint32_t pair;        // of a transfer within its two ranks alone: where they are; else 0
    std::uint32_t launch = 0;  // of a call that is planned with others: as in Op; else 0
    std::uint16_t launch_index = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const;
  };
  Key key_of(std::uint32_t group, const Op& op) const;
  const Algorithm& find(Func func, std::uint16_t kind) const;
  void check_served(std::uint32_t group, const Op& op, const Algorithm& row) const;
  void refuse_broadcasts_in_launch(std::uint32_t group, const Op& op) const;
  Communicator communicator(const Key& key, const Algorithm& algorithm) const;
  void plan_together(const Key& key, Communicator& comm) const;
  std::unique_ptr<Schedule> make(const Key& key, const Algorithm& algorithm,
                                 const Collective& c) const;
  using GroupsByKind = std::vector<std::vector<std::uint32_t>>;
  void add(const Op& op, const GroupsByKind& groups_of);
  std::uint16_t row_for(Func func, std::uint16_t kind, const std::string& algorithm,
                        Exactness exactness);
  Exactness compared(Exactness exactness, std::string_view library, std::string_view played,
                     std::uint32_t group) const;

  const JobSpec& spec_;
  const Workload& workload_;
  const Cluster& cluster_;
  std::vector<Row> rows_;
  // By group kind: of sends and receives.
  std::vector<std::uint16_t> transfer_row_;
  std::vector<const Algorithm*> transfer_algorithm_;
  std::unordered_map<Key, Play, Hash> made_;
  // The transfers played last; emptied when it has kMostTransfers.
  mutable std::unordered_map<Key, std::shared_ptr<const Schedule>, Hash> transfers_;
  std::size_t steps_left_ = StepTable::kMostSteps;
};

// Makes every schedule of the workload, so that a call that a library cannot do fails before the
// start. Throws Error(usage).
void check_schedules(const JobSpec& spec, const Workload& workload);

}  // namespace ghostrank
