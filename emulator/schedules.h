// The schedules that a job's collectives play, made once per distinct (group shape, function,
// count or counts, element size, root) and shared by every rank that plays them.
//
// Threading: one instance per shard; not shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/cluster.h"
#include "emulator/ledger.h"
#include "emulator/network.h"

namespace ghostrank {

// The collective that an op is in a group of this size. Throws Error(usage) when the op's counts
// are not there or not those of such a group.
Collective collective_of(const Workload& workload, const Op& op, int size);

// A send/recv of two members of a group, seen from both ends.
class Transfer final : public Schedule {
 public:
  Transfer(int size, std::uint64_t count, std::uint32_t element_bytes, Rank source, Rank target)
      : Schedule({Func::send_recv, size, count, element_bytes, source}),
        source_(source),
        target_(target) {}
  int actors(Rank r) const override { return r == source_ || r == target_ ? 1 : 0; }
  Actor actor(Rank, int) const override { return {0, 1}; }
  Step step(Rank r, int, int) const override;
  int receiver(Rank, int, Rank) const override { return 0; }

 private:
  Rank source_, target_;
};

class Schedules {
 public:
  // Throws Error(usage) when a function that the workload uses has no such algorithm.
  Schedules(const JobSpec& spec, const Workload& workload, const Cluster& cluster);

  const Schedule& get(std::uint32_t group, const Op& op) { return *made(group, op).schedule; }

  // A call of a group wholly inside a node as one delay: the steps of the longest chain at the
  // link's latency, and the bytes of the member that sends or receives most at its rate.
  struct NodeCall {
    Picoseconds duration = 0;
    LedgerCell sent;  // by all members together
  };
  const NodeCall& inside_node(std::uint32_t group, const Op& op, const LinkSpeed& link);

  // Rows of the report and the ledger: one per (function, group kind) in use.
  // The algorithm of a function that the workload uses.
  const Algorithm& algorithm(Func func) const {
    return *algorithm_[static_cast<std::size_t>(func)];
  }

  struct Row {
    Func func;
    std::uint16_t kind;
    std::string op, group, algorithm;
  };
  const std::vector<Row>& rows() const { return rows_; }
  std::uint16_t row(Func func, std::uint16_t kind) const {
    return row_of_[static_cast<std::size_t>(func) * kinds_ + kind];
  }

 private:
  struct Key {
    std::uint64_t count;  // of a v-variant: the index of its counts
    std::uint32_t shape, element_bytes;
    std::int32_t root;
    Func func;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const;
  };
  struct Made {
    std::unique_ptr<Schedule> schedule;
    std::optional<NodeCall> call;
  };
  Made& made(std::uint32_t group, const Op& op);

  const JobSpec& spec_;
  const Workload& workload_;
  const Cluster& cluster_;
  std::size_t kinds_;
  std::vector<Row> rows_;
  std::vector<std::uint16_t> row_of_;
  std::vector<const Algorithm*> algorithm_;  // by function
  std::unordered_map<Key, Made, Hash> made_;
};

}  // namespace ghostrank
