#include "emulator/packets/setup.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <poll.h>
#include <set>
#include <string>
#include <utility>

#include "emulator/common/blob.h"
#include "emulator/common/clock.h"
#include "emulator/packets/udp.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr int kPatience = 6;  // successive rounds in which no further end is heard
// Each round takes twice as long as the one before, at most kLongestRoundNs.
constexpr std::int64_t kFirstRoundNs = 20'000'000;
constexpr std::int64_t kLongestRoundNs = 320'000'000;

// From one socket of the job to another. A socket's name is the first endpoint that uses it.
struct Pair {
  std::int32_t from = 0, to = 0;
  auto operator<=>(const Pair&) const = default;
};

struct Missing {
  Pair pair;
  bool small_came = false;  // a packet without payload has arrived
};

class PacketSetup {
 public:
  PacketSetup(const JobSpec& spec, const Flows& flows, Control& control, std::uint64_t nonce,
              const std::vector<EndpointBinding>& bindings)
      : spec_(spec),
        flows_(flows),
        control_(control),
        nonce_(nonce),
        host_(control.world().host()),
        bindings_(bindings),
        socket_of_(bindings.size()) {}

  std::vector<std::unique_ptr<Packets>> open() {
    for (int s = 0; s < flows_.shards(); ++s) open_sockets(s);
    exchange_addresses();
    for (int s = 0; s < flows_.shards(); ++s) connect(s);
    say_hello();
    return {std::move_iterator(packets_.begin()), std::move_iterator(packets_.end())};
  }

 private:
  const FlowEndpoint& endpoint(std::size_t i) const { return flows_.endpoints()[i]; }

  // Endpoints with the same namespace and address share a socket.
  void open_sockets(int shard) {
    UdpOptions o;
    o.nonce = nonce_;
    o.mtu = spec_.fabric.packets.mtu;
    o.keep_payload = spec_.run.verify;
    o.sockets.clear();
    std::map<std::pair<std::string, std::string>, int> known;
    for (std::size_t i = 0; i < bindings_.size(); ++i) {
      if (endpoint(i).host != host_ || endpoint(i).shard != shard) continue;
      const EndpointBinding& b = bindings_[i];
      const auto [it, fresh] =
          known.try_emplace({b.network_namespace, b.address}, static_cast<int>(o.sockets.size()));
      socket_of_[i] = it->second;
      if (fresh) o.sockets.push_back(b);
    }
    packets_.push_back(UdpPackets::open(o));
  }

  UdpPackets& packets_of(std::size_t own_endpoint) {
    return *packets_[endpoint(own_endpoint).shard];
  }

  void exchange_addresses() {
    BlobWriter mine;
    for (std::size_t i = 0; i < bindings_.size(); ++i)
      if (endpoint(i).host == host_) mine.put(packets_of(i).address(socket_of_[i]));
    const std::vector<std::string> all = all_gather_or_throw(control_, mine.bytes());
    std::vector<BlobReader> readers(all.begin(), all.end());
    std::map<std::string, std::int32_t> known;
    for (std::size_t i = 0; i < bindings_.size(); ++i) {
      readers[endpoint(i).host.index()].get(addresses_.emplace_back());
      names_.push_back(
          known.try_emplace(addresses_.back(), static_cast<std::int32_t>(i)).first->second);
    }
    for (std::size_t h = 0; h < all.size(); ++h) require_whole(readers[h].complete(), h);
  }

  static void require_whole(bool whole, std::size_t host) {
    if (whole) return;
    throw Error("host " + std::to_string(host) +
                    " sent a malformed message while packets were set up; check that every host "
                    "runs the same ghostrank",
                ErrorKind::environment);
  }

  void connect(int shard) {
    std::vector<PacketFlow> opened;
    for (const FlowEnd& e : flows_.of(host_, shard)) {
      const Flow& flow = flows_.flows()[e.flow];
      const auto near = static_cast<std::size_t>(flow.end[e.end]);
      const auto far = static_cast<std::size_t>(flow.end[1 - e.end]);
      const Pair out{names_[near], names_[far]};
      packet_flows_.try_emplace(out, shard, static_cast<int>(opened.size()));
      awaited_[{out.to, out.from}] = false;
      opened.push_back(
          {socket_of_[near], addresses_[far], "host " + to_string(endpoint(far).host)});
    }
    packets_[shard]->connect(opened);
  }

  // ---- Hello

  void say_hello() {
    std::vector<Missing> missing;
    for (const auto& [pair, flow] : packet_flows_) missing.push_back({pair});
    std::int64_t round_ns = kFirstRoundNs;
    std::size_t fewest = SIZE_MAX;
    for (int fruitless = 0;;) {
      send_hellos(missing, round_ns < kFirstRoundNs * 2 ? 1 : 2);
      listen(monotonic_ns() + round_ns);
      missing = all_missing();  // every process takes part, also one whose parties send no packets
      if (missing.empty()) return;
      fruitless = missing.size() < fewest ? 0 : fruitless + 1;
      fewest = std::min(fewest, missing.size());
      if (fruitless == kPatience) give_up(missing);
      round_ns = std::min(2 * round_ns, kLongestRoundNs);
    }
  }

  // Sends a hello of the largest size over each packet flow in `missing` that starts here; with
  // `kinds` 2 also a small one, which shows whether size is the problem.
  void send_hellos(const std::vector<Missing>& missing, int kinds) {
    for (const Missing& m : missing) {
      const auto found = packet_flows_.find(m.pair);
      if (found == packet_flows_.end()) continue;
      const auto [shard, flow] = found->second;
      UdpPackets& packets = *packets_[shard];
      for (int kind = 0; kind < kinds; ++kind) {
        Message hello;
        hello.header.kind = MessageKind::probe;
        hello.header.source = m.pair.from;
        hello.header.target = m.pair.to;
        hello.header.bytes = (kind == 0 ? packets.most_bytes() : 0) & kMostBytes;
        while (!packets.try_send(flow, hello) && packets.failure().empty()) look();
      }
      look();
    }
  }

  // Listens until this process has heard every end that it awaits, or until `until_ns`.
  void listen(std::int64_t until_ns) {
    std::vector<pollfd> fds;
    for (const auto& p : packets_) fds.push_back({p->wait_fd(), POLLIN, 0});
    for (;;) {
      look();
      const bool all = std::all_of(awaited_.begin(), awaited_.end(),
                                   [](const auto& pair) { return pair.second; });
      const std::int64_t left = until_ns - monotonic_ns();
      if ((all && idle()) || left <= 0) return;
      ::poll(fds.data(), fds.size(), static_cast<int>(std::min<std::int64_t>(left / 1'000'000, 1)));
    }
  }

  bool idle() const {
    return std::all_of(packets_.begin(), packets_.end(), [](const auto& p) { return p->idle(); });
  }

  void look() {
    std::vector<Message> arrived;
    for (const auto& p : packets_) {
      p->flush();
      p->poll(arrived);
      if (!p->failure().empty()) throw Error(p->failure(), ErrorKind::environment);
    }
    for (const Message& m : arrived) {
      const Pair pair{m.header.source, m.header.target};
      const auto found = awaited_.find(pair);
      if (found == awaited_.end()) continue;
      if (m.header.bytes > 0)
        found->second = true;
      else
        small_.insert(pair);
    }
  }

  // Returns the missing pairs of the whole job.
  std::vector<Missing> all_missing() {
    BlobWriter mine;
    std::vector<Pair> pairs;
    for (const auto& [pair, heard] : awaited_)
      if (!heard) pairs.push_back(pair);
    mine.put(static_cast<std::uint64_t>(pairs.size()));
    for (const Pair& pair : pairs) mine.put(pair), mine.put(small_.contains(pair));
    std::vector<Missing> missing;
    const std::vector<std::string> all = all_gather_or_throw(control_, mine.bytes());
    for (std::size_t h = 0; h < all.size(); ++h) {
      BlobReader r(all[h]);
      std::uint64_t count = 0;
      bool good = true;
      for (r.get(count); count > 0 && !r.bad(); --count) {
        Missing& m = missing.emplace_back();
        r.get(m.pair), r.get(m.small_came);
        good &= known(m.pair);
      }
      require_whole(good && r.complete(), h);
    }
    return missing;
  }

  bool known(const Pair& pair) const {
    const auto end = static_cast<std::int32_t>(addresses_.size());
    return pair.from >= 0 && pair.to >= 0 && pair.from < end && pair.to < end;
  }

  std::string name(std::int32_t socket) const {
    const std::size_t i = socket;
    return "host " + to_string(endpoint(i).host) + " (" +
           addresses_[i].substr(0, addresses_[i].find(' ')) + ")";
  }

  // Throws the same error on every host, because all hosts know what each one heard and what the
  // sender's kernel reported.
  [[noreturn]] void give_up(const std::vector<Missing>& missing) {
    const Missing& first = missing.front();
    const std::size_t from = first.pair.from;
    BlobWriter mine;
    mine.put(endpoint(from).host == host_ ? packets_of(from).trouble(socket_of_[from])
                                          : std::string());
    const std::vector<std::string> all = all_gather_or_throw(control_, mine.bytes());
    std::string said;
    BlobReader(all[endpoint(from).host.index()]).get(said);
    if (!said.empty()) said = " (the sender's kernel says: " + said + ")";
    const std::string mtu = std::to_string(spec_.fabric.packets.mtu);
    std::string text = "the job sends packets over UDP, and ";
    if (first.small_came)
      text += "none of " + mtu + " bytes (fabric.packets.mtu) gets from " + name(first.pair.from) +
              " to " + name(first.pair.to) + said +
              ", while small ones do; set fabric.packets.mtu to what every interface and switch "
              "between them carries, 1500 perhaps, or raise theirs (ip link set DEVICE mtu " +
              mtu + ")";
    else
      text += "none gets from " + name(first.pair.from) + " to " + name(first.pair.to) + said +
              "; let UDP pass between the hosts (firewall), or choose addresses that it passes "
              "between with fabric.bind";
    if (missing.size() > 1)
      text += "; nor do they between " + std::to_string(missing.size() - 1) + " other pairs";
    throw Error(text, ErrorKind::environment);
  }

  const JobSpec& spec_;
  const Flows& flows_;
  Control& control_;
  const std::uint64_t nonce_;
  const Host host_;
  const std::vector<EndpointBinding>& bindings_;
  std::vector<int> socket_of_;  // by endpoint, for ours
  std::vector<std::unique_ptr<UdpPackets>> packets_;
  std::vector<std::string> addresses_;                // by endpoint: address of its socket
  std::vector<std::int32_t> names_;                   // by endpoint: name of its socket
  std::map<Pair, std::pair<int, int>> packet_flows_;  // that start here: shard, flow
  std::map<Pair, bool> awaited_;  // that end here: whether a full-size hello came
  std::set<Pair> small_;          // that end here: a small hello came
};

}  // namespace

std::vector<std::unique_ptr<Packets>> open_packets(const JobSpec& spec, const Flows& flows,
                                                   Control& control, std::uint64_t nonce,
                                                   const std::vector<EndpointBinding>& bindings) {
  return PacketSetup(spec, flows, control, nonce, bindings).open();
}

}  // namespace ghostrank
