// A scheme with agents as a plug-in: an all-reduce in packets through a server, which sums them and
// sends all ranks the sum. Packets may be lost, duplicated, late or overtaken. The blocks of all
// calls go one after the other: slow, but easy to see right.
//
//   rank 0   block 7 >.              (timer) 7 >.             8 >.
//   server             + sum 7 > 0 1            > sum 7 > 0      + sum 8 > 0 1
//   rank 1   block 7 >'         `> lost to 0             8 >'
//   2n packets for every 1,384 bytes; every rank sends S, so does the server, by multicast
// The server adds each rank's block once. A rank that sends block b + 1 has sum b, so the server
// keeps only the last sum; on a timer it answers, in one copy, the ranks that missed it.
#include <algorithm>
#include <deque>
#include <set>

#include "collectives/agent.h"
#include "collectives/plugin.h"

namespace {
using namespace ghostrank;
constexpr std::uint64_t kHeader = 16, kData = 1384;  // bytes of a packet; kData is whole elements
constexpr Picoseconds kMicrosecond = 1'000'000, kAdding = kMicrosecond / 10;

class Member final : public Agent {
 public:
  explicit Member(GroupParty server) : server_(server) {}
  void on_call(Io& io, const Call& call) override {
    calls_.push_back(call);
    if (calls_.size() == 1) go_on(io);
  }
  void on_note(Io& io, GroupParty, const Note& sum) override {
    if (calls_.empty() || sum.index != block_) return;  // a sum it has already
    io.tensor(sum.call).write(first_, sum.content);
    ++block_;
    first_ += sum.elements;
    go_on(io);
  }
  void on_timer(Io& io, std::uint32_t) override { go_on(io); }

 private:
  // Ends complete calls, then sends the next block; if there is no room, the timer sends it later.
  void go_on(Io& io) {
    for (; !calls_.empty() && first_ == calls_.front().collective.count; first_ = 0) {
      io.done(calls_.front().number);
      calls_.pop_front();
    }
    if (calls_.empty()) return io.disarm(0);
    const Call& call = calls_.front();
    Note part{.call = call.number, .index = block_, .type = call.type};
    part.elements = std::min(kData / bytes_of(call.type), call.collective.count - first_);
    part.content = io.tensor(call.number).read(first_, part.elements);
    io.send(server_, part, Carriage::packet);
    io.arm(0, 100 * kMicrosecond + 4 * server_ * kAdding);
  }

  GroupParty server_;
  std::deque<Call> calls_;   // open calls
  std::uint32_t block_ = 0;  // block number over all calls, the same on all ranks
  std::uint64_t first_ = 0;  // first element of the block
};

class Server final : public Agent {
 public:
  explicit Server(int size) : size_(size) {}
  void on_note(Io& io, GroupParty from, const Note& part) override {
    io.spend(kAdding);
    if (part.index == block_ && heard_.insert(from).second) {
      sum_.add(part);
      if (std::ssize(heard_) < size_) return;
      last_ = std::exchange(sum_, {});
      told_ = {0, part.call, block_++, part.type, part.elements, last_.content()};
      asking_ = std::exchange(heard_, {});
      on_timer(io, 0);
    } else if (part.index + 1 == block_) {  // the rank missed the sum, or the sum is under way
      if (asking_.empty()) io.arm(0, 10 * kMicrosecond);
      asking_.insert(from);
    }
  }
  void on_timer(Io& io, std::uint32_t) override {
    const std::vector<GroupParty> to(asking_.begin(), asking_.end());
    if (!to.empty()) io.send(to, told_, Carriage::packet);  // no room: the ranks ask again
    asking_.clear();
  }

 private:
  int size_;
  std::uint32_t block_ = 0;  // the block being summed
  Sum sum_, last_;
  Note told_;  // the sum of the block before it
  std::set<GroupParty> heard_, asking_;
};

class PacketServer final : public Ends {
 public:
  using Ends::Ends;
  std::vector<Helper> helpers() const override { return {{PartyKind::server}}; }
  std::unique_ptr<Agent> agent(GroupParty party) const override {
    if (party == size()) return std::make_unique<Server>(size());
    return std::make_unique<Member>(size());
  }
  std::vector<Edge> traffic(const Call& call) const override {
    const std::uint64_t bytes = call.collective.count * bytes_of(call.type);
    const std::uint64_t packets = (bytes + kData - 1) / kData, all = bytes + packets * kHeader;
    std::vector<Edge> edges;
    for (GroupRank r = 0; r < size(); ++r)
      for (const auto& [from, to] : {std::pair(r, size()), std::pair(size(), r)})
        edges.push_back({from, to, all, packets, Carriage::packet});
    return edges;
  }
  std::uint64_t overhead_bytes() const override { return kHeader; }
  Survives survives() const override { return {true, true, true, true}; }
};

const Algorithm kRows[]{{.library = "mine",
                         .func = Func::all_reduce,
                         .name = "packet-server",
                         .ends = [](int n, auto&) { return std::make_unique<PacketServer>(n); }}};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
