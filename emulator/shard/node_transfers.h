// Transfers inside a node between lone ports (ranks/lone_ports.h), without their messages. Their
// times are those that the messages would have, to the picosecond:
//
//   the sender comes     as many messages of each part as there are credits queue at its port
//   the receiver comes   takes those that are in, part by part, then each as it comes in; a credit
//                        goes back, and lets one more message of that part go
//   the sender ends      when its last message may go; without credits, when it comes
//   the receiver ends    when its last message is in
//
// Units: emulated picoseconds. Bounds: an entry for each pair of ranks and distinct transfer, and
// kMostKnown times of each. Threading: one owner (a shard).
#pragma once

#include <cstdint>
#include <forward_list>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/network/port.h"
#include "emulator/shard/ranks/lone_ports.h"
#include "emulator/shard/ranks/rank.h"

namespace ghostrank {

// From when the sender came.
struct TransferTimes {
  Picoseconds sender = 0, receiver = 0;  // when they end
  Picoseconds port_free = 0;             // when the sender's last message has left its port
};

// The messages of a transfer.
class TransferParts {
 public:
  // By part, how long each of its messages takes at a port.
  using Messages = std::vector<std::vector<Picoseconds>>;
  TransferParts(Messages messages, std::uint32_t credits, const LinkSpeed& nvlink);

  bool sender_waits() const { return sender_waits_; }  // for its receiver
  // `late`: how much later than the sender the receiver comes, negative if sooner. `busy`: how long
  // the sender's port is not free when the sender comes.
  const TransferTimes& times(Picoseconds late, Picoseconds busy);

 private:
  static constexpr std::size_t kMostKnown = 1024;
  struct OnTheWay {
    std::uint32_t part;
    Picoseconds in;
  };
  TransferTimes play(Picoseconds late, Picoseconds busy);

  Messages messages_;
  std::uint32_t credits_;  // of each part; 0: without
  Picoseconds latency_;
  bool ports_;  // that take time
  bool sender_waits_ = false;
  std::vector<OnTheWay> on_the_way_;  // of play(), like the next
  std::vector<std::size_t> sent_;     // by part
  std::map<std::pair<Picoseconds, Picoseconds>, TransferTimes> known_;
};

// All transfers from one rank of a group to another. Both ends come to them in one order.
struct TransferEnds {
  // Those that are alike.
  struct Kind {
    Op op;  // one of them
    std::shared_ptr<const Schedule> schedule;
    LedgerCell sent;
    TransferParts* parts = nullptr;
  };
  // An end whose other end has not come.
  struct Open {
    Flight* flight = nullptr;  // null: a sender that has ended
    const Kind* kind = nullptr;
    bool sends = false;
    Picoseconds at = 0;    // when it came
    Picoseconds busy = 0;  // of a sender: as in times()
  };
  std::uint32_t group;
  GroupRank source, target;
  std::forward_list<Kind> kinds{};  // the latest first
  std::vector<Open> open{};         // all senders or all receivers, as they came
  std::size_t met = 0;              // so many of them have met their other ends

  // Returns the other end of the transfer whose end has come; nullopt: it has not come.
  std::optional<Open> meet(const Open& end);
};

class NodeTransfers {
 public:
  // As LonePorts.
  NodeTransfers(const Workload& workload, const Cluster& cluster, const Schedules& schedules,
                const LinkSpeed& nvlink);

  bool any() const { return ports_.any(); }
  // Null: the transfers' messages are played.
  TransferEnds* between(std::uint32_t group, GroupRank source, GroupRank target);
  const TransferEnds::Kind& kind_of(TransferEnds& ends, const Op& op);
  void clear();  // between segments

 private:
  const Workload& workload_;
  const Cluster& cluster_;
  const Schedules& schedules_;
  const LinkSpeed nvlink_;
  const LonePorts ports_;
  std::map<std::tuple<std::uint32_t, GroupRank, GroupRank>, TransferEnds> ends_;
  std::map<std::pair<std::uint32_t, TransferParts::Messages>, TransferParts> parts_;  // by credits
};

}  // namespace ghostrank
