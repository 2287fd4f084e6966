// Counts what the calls of a job send, and for how long they keep NICs and links busy, by walking
// their schedules. See traffic.h.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "emulator/fabric/wire.h"
#include "emulator/network/port.h"
#include "emulator/result/network_report.h"
#include "emulator/traffic/call_traffic.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/ledger.h"
#include "emulator/traffic/link_traffic.h"
#include "emulator/traffic/longest_chain.h"
#include "emulator/traffic/schedules.h"
#include "emulator/traffic/scheme_traffic.h"
#include "emulator/traffic/traffic.h"
#include "profiles/job/key_error.h"

namespace ghostrank {

class TrafficPlanner {
 public:
  TrafficPlanner(const JobSpec& spec, const Workload& workload,
                 std::set<Connection>* connections = nullptr);

  // The mean of iterations, each of which counts so often.
  TrafficPlan plan(const std::map<int, std::uint64_t>& iterations) {
    return with_source(spec_, [&] { return counted(iterations); });
  }

  // As CallsOnNetwork::busy().
  const std::vector<CallsOnNetwork::Busy>& busy(const std::vector<std::uint32_t>& groups,
                                                const std::vector<Op>& calls,
                                                const std::vector<GroupRank>& receivers);

  // As CallsOnNetwork::ahead().
  double ahead(std::uint32_t group, const Op& receive, GroupRank receiver);

 private:
  // A call that one group makes, seen by its member at position 0; of a transfer, seen by the
  // receiver.
  struct Call {
    std::uint32_t group;
    Func func;
    std::uint32_t element_bytes;
    std::uint64_t count;     // of a v-variant: index of its counts
    GroupRank root, target;  // of a transfer: from root to target; else `target` is kNoRank
    bool sparse;             // the reduced tensor may be sparse
    Reduction reduction;
    bool floats;
    std::uint32_t pair;        // of a transfer within its two ranks alone: where they are; else 0
    std::uint32_t tensor;      // of a scheme, or one with tables; else 0
    std::uint32_t launch = 0;  // of a collective: as in Op
    std::uint16_t launch_index = 0;
    auto operator<=>(const Call&) const = default;
  };

  TrafficPlan counted(const std::map<int, std::uint64_t>& iterations);
  // Add to calls_ what the ranks play.
  void count_ops(int iteration, std::uint64_t times);
  void count_op(WorldRank rank, const Op& op, std::uint64_t times);

  // Adds what the call sends to NICs and links.
  void occupy(const Call& call);

  // Returns how long NICs and links are busy with what they were given, and takes it from them.
  std::vector<CallsOnNetwork::Busy> take_busy();

  struct Walked {
    CallTraffic traffic;
    std::optional<int> chain;  // messages that wait for each other, at least; empty: not counted
  };
  Walked& walked(const Call& call);

  bool is_one_delay(const Call& call) const {
    return models_nodes_ && call.target == kNoRank &&
           workload_.groups[call.group].members.size() > 1 && cluster_.inside_node(call.group) &&
           schedules_.can_be_delay(call.group, *ops_.at(call));
  }

  std::shared_ptr<const Schedule> schedule_of(const Call& call) const {
    const Op& op = *ops_.at(call);
    if (call.target != kNoRank) return schedules_.transfer(call.group, op, call.root, call.target);
    return {std::shared_ptr<const Schedule>(), schedules_.get(call.group, op).schedule.get()};
  }

  // Returns how long the latencies of the call's messages take at least in every iteration.
  double add_call(const Call& call, std::uint64_t times);

  double nic_seconds(Nic nic, std::uint64_t bytes) const {
    return seconds(cluster_.topology().nic(nic).serialise(bytes));
  }

  // Null if the call has a schedule.
  const Algorithm* scheme_of(const Call& call) const {
    return call.target == kNoRank ? schedules_.get(call.group, *ops_.at(call)).scheme : nullptr;
  }

  // Adds what the agents of a scheme send if nothing is lost.
  void add_notes(CollectiveTraffic& row, const Call& call, const Algorithm& scheme,
                 std::uint64_t times);

  // Messages of the call that wait for each other, at least.
  int chain_of(const Call& call);

  // Notes between which ranks the iteration's transfers go.
  void note_transfers();

  // How many hops' latency a call that sends messages adds to every iteration, at least. Where no
  // message is answered there are none: the next iteration's follow before it has arrived.
  int hops_of_iteration(const Call& call);

  // How long their latencies take.
  double chain_seconds(const Call& call);

  void add_edge(CollectiveTraffic& row, const Call& call, const CallTraffic::Edge& edge,
                const NicPair& nics, std::uint64_t times);

  // `egress`: bytes that occupy the sender's NIC.
  void add_between(CollectiveTraffic& row, const RoutedConnection& connection, const NicPair& nics,
                   const LedgerCell& call, std::uint64_t egress, std::uint64_t times);

  // Makes a mean of what was summed up over so many iterations.
  void finish(std::uint64_t iterations);

  // How long the links of a leaf need together for what its NICs send or receive, whatever the
  // routing chooses.
  Picoseconds busiest_leaf() const;

  std::set<Connection>* const connections_;  // null: not asked for
  const Workload& workload_;
  const JobSpec& spec_;
  const bool models_nodes_;
  const bool copies_;  // the network copies a note to many
  Cluster cluster_;
  Schedules schedules_;
  LinkSpeed nic_;
  Picoseconds intra_latency_;
  TrafficPlan plan_;
  std::map<Call, std::uint64_t> calls_;
  std::map<Call, const Op*> ops_;
  // By the first group's calls.
  std::map<std::pair<std::size_t, std::map<Call, std::uint64_t>>, std::vector<CallsOnNetwork::Busy>>
      busy_;
  std::set<std::pair<WorldRank, WorldRank>> transfers_;  // of an iteration: from, to
  // By kind of group, which may choose the algorithm, and call, whose `group` is a layout.
  std::map<std::pair<std::uint16_t, Call>, std::unique_ptr<Walked>> walked_;
  std::map<std::pair<Nic, Nic>, LedgerCell> pairs_;
  // Of these, what may need less of links: notes to many, which may share them, and estimates.
  std::map<std::pair<Nic, Nic>, std::uint64_t> unsure_bytes_;
  struct BothWays {
    std::uint64_t sent = 0, taken = 0;  // bytes
  };
  std::map<Nic, BothWays> touched_;  // by the call that is counted
  struct GroupSeconds {
    double serial = 0, chained = 0;
  };
  // By row, group, and receiver of a service's transfers.
  std::map<std::tuple<std::uint16_t, std::uint32_t, GroupRank>, GroupSeconds> group_seconds_;
  LinkTraffic links_;
  VectorBy<Nic, std::uint64_t> egress_, ingress_;
};

}  // namespace ghostrank
