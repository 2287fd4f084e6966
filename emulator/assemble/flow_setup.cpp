#include "emulator/assemble/flow_setup.h"

#include <algorithm>
#include <set>
#include <sys/resource.h>
#include <tuple>

#include "emulator/assemble/binding.h"
#include "emulator/common/blob.h"
#include "emulator/common/clock.h"
#include "emulator/common/log.h"
#include "emulator/fabric/datagrams.h"
#include "emulator/host/counters.h"
#include "emulator/host/host_facts.h"
#include "emulator/host/hosts.h"
#include "emulator/host/network_namespace.h"
#include "emulator/packets/setup.h"
#include "profiles/error.h"
#include "profiles/job/key_error.h"
#include "profiles/planners/shared/machine_memory.h"

namespace ghostrank {
namespace {

// Provider net needs these files and bytes per endpoint and per end of a flow; others need more.
constexpr std::uint64_t kFilesPerShard = 32, kFilesPerEndpoint = 2, kFilesPerFlow = 1;
constexpr std::uint64_t kFilesPerNamespace = 1;  // for an interface's counters
constexpr std::uint64_t kFilesForPackets = 1;    // per endpoint and per shard
constexpr std::uint64_t kBytesPerEndpoint = 256 << 10, kBytesPerFlow = 48 << 10;

// Bytes that fit one standard frame, one jumbo frame, and that need many frames. A path may pass
// the largest and drop the others, because a kernel hands over a GSO packet of any size in one
// piece, but drops a single frame above the MTU.
constexpr std::uint64_t kMuch[] = {1 << 10, 7 << 10, 64 << 10};
constexpr double kLongestMuch = 10;  // seconds for each size

class FlowSetup {
 public:
  FlowSetup(const JobSpec& spec, const Flows& flows, Control& control, std::uint64_t nonce)
      : spec_(spec),
        flows_(flows),
        control_(control),
        nonce_(nonce),
        host_(control.world().host()),
        shards_(flows.shards()),
        wire_(spec.fabric.colocated == Colocated::wire) {}

  OpenedFlows open() {
    check_this_host(spec_, host_, control_.world().size);
    check_limits();
    for (int s = 0; s < shards_; ++s) open_endpoints(s);
    exchange_addresses();
    if (wire_) refuse_short_cuts();
    for (int s = 0; s < shards_; ++s) connect(s);
    say_hello(0);
    say_hello(1);
    for (const std::uint64_t bytes : kMuch) say_much(bytes);
    if (flows_.with_packets())
      out_.packets = open_packets(spec_, flows_, control_, nonce_, bindings_);
    log_info("all flows of the job (", flows_.flows().size(), ") are open, large messages pass; ",
             static_cast<double>(monotonic_ns() - began_ns_) * 1e-9, " s");
    return std::move(out_);
  }

 private:
  struct Bound {
    // `blob`: for the fabric; `plain`: for error texts and routes.
    std::string blob, plain;
  };

  // Fails now, with the numbers, rather than in the middle of opening the flows.
  void check_limits() {
    std::uint64_t ends = 0, endpoints = 0;
    for (int s = 0; s < shards_; ++s) ends += flows_.of(host_, s).size();
    for (const FlowEndpoint& e : flows_.endpoints()) endpoints += e.host == host_;
    const std::uint64_t packet_files =
        flows_.with_packets() ? kFilesForPackets * (endpoints + static_cast<unsigned>(shards_)) : 0;
    const std::uint64_t files = kFilesPerShard * shards_ +
                                (kFilesPerEndpoint + kFilesPerNamespace) * endpoints +
                                kFilesPerFlow * ends + 64 + packet_files;
    const std::string what = spec_.source_of("fabric.flows") +
                             ": fabric.flows: " + std::to_string(ends) + " connections from " +
                             std::to_string(endpoints) + " endpoints of this process need about ";
    const std::string otherwise = ", or choose fewer flows with fabric.flows: nic or process";
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < files) {
      limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, files);
      setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < files) {
      throw Error(what + std::to_string(files) + " file descriptors, allowed are " +
                      std::to_string(limit.rlim_max) + "; raise the limit (ulimit -Hn " +
                      std::to_string(files) + ")" + otherwise,
                  ErrorKind::environment);
    }
    const std::uint64_t bytes = kBytesPerEndpoint * endpoints + kBytesPerFlow * ends;
    const std::uint64_t have = available_memory_bytes();
    if (have > 0 && bytes > have / 10 * 8) {
      throw Error(what + std::to_string(bytes >> 20) + " MiB of memory, available are " +
                      std::to_string(have >> 20) + " MiB; use more hosts" + otherwise,
                  ErrorKind::environment);
    }
  }

  std::string namespace_of(const FlowEndpoint& e) const {
    return e.node < Node(0) || spec_.fabric.namespaces.empty()
               ? ""
               : namespace_of_node(spec_.fabric.namespaces, e.node);
  }

  EndpointBinding binding_of(const FlowEndpoint& e) const {
    return binding_of_nic(spec_, control_.world(), e.node, e.nic);
  }

  void open_endpoints(int shard) {
    FabricOptions o;
    o.provider = spec_.fabric.provider;
    o.nonce = nonce_;
    o.keep_payload = spec_.run.verify || flows_.with_notes();  // notes carry real words
    o.frame_bytes = spec_.fabric.frame_bytes;
    o.mtu = spec_.fabric.packets.mtu;
    o.endpoints.clear();
    position_.resize(flows_.endpoints().size());
    bindings_.resize(flows_.endpoints().size());
    for (std::size_t i = 0; i < flows_.endpoints().size(); ++i) {
      const FlowEndpoint& e = flows_.endpoints()[i];
      if (e.host != host_ || e.shard != shard) continue;
      position_[i] = static_cast<int>(o.endpoints.size());
      o.endpoints.push_back(binding_of(e));
      bindings_[i] = o.endpoints.back();
      log_binding(e, bindings_[i]);
    }
    if (o.endpoints.empty()) o.endpoints.push_back(binding_of({.host = host_, .shard = shard}));
    for (const EndpointBinding& b : o.endpoints) note_interfaces(b), note_cap(b);
    out_.fabrics.push_back(open_fabric(spec_.fabric.kind, o));
  }

  // A rail once, however many emulated nodes use it.
  void log_binding(const FlowEndpoint& e, const EndpointBinding& binding) {
    const std::string& inside = binding.network_namespace;
    const int rail = std::max(0, e.nic.value()) % spec_.cluster.nics_per_node;
    if (!logged_.insert({rail, inside, binding.address}).second) return;
    log_info("rail ", rail, ": address ", binding.address.empty() ? "any" : binding.address,
             inside.empty() ? "" : " in namespace ", inside, ", provider ", spec_.fabric.provider,
             " asked for");
  }

  void note_cap(const EndpointBinding& binding) {
    if (!binding.cap) return;
    const bool datagrams = spec_.fabric.kind == FabricKind::packets;
    const double bps = datagrams ? datagram_stream_bps(*binding.cap, spec_.fabric.packets.mtu)
                                 : binding.cap->stream_bps();
    out_.stream_bps = out_.stream_bps == 0 ? bps : std::min(out_.stream_bps, bps);
  }

  void note_interfaces(const EndpointBinding& binding) {
    for (CountedInterface& counted :
         counted_interfaces(binding.network_namespace, binding.address)) {
      const auto at = std::lower_bound(out_.interfaces.begin(), out_.interfaces.end(), counted);
      if (at == out_.interfaces.end() || *at != counted)
        out_.interfaces.insert(at, std::move(counted));
    }
  }

  // Every process publishes the addresses of its endpoints, in the order of Flows::endpoints().
  void exchange_addresses() {
    BlobWriter mine;
    mine.put(out_.fabrics[0]->provider());
    mine.put(out_.fabrics[0]->transport());
    for (std::size_t i = 0; i < flows_.endpoints().size(); ++i) {
      const FlowEndpoint& e = flows_.endpoints()[i];
      if (e.host != host_) continue;
      mine.put(out_.fabrics[e.shard]->address(position_[i]));
      mine.put(bindings_[i].address);
    }
    const std::vector<std::string> all = all_gather_or_throw(control_, mine.bytes());
    std::vector<BlobReader> readers;
    for (const std::string& blob : all) {
      BlobReader& r = readers.emplace_back(blob);
      r.get(out_.providers.emplace_back());
      r.get(out_.transports.emplace_back());
    }
    for (std::size_t h = 0; h < all.size(); ++h) {
      if (out_.providers[h] == out_.providers[0]) continue;
      throw Error("host " + std::to_string(h) + " uses libfabric provider " + out_.providers[h] +
                      ", host 0 uses " + out_.providers[0] +
                      "; they do not speak to each other: name one with fabric.provider",
                  ErrorKind::environment);
    }
    for (const FlowEndpoint& e : flows_.endpoints()) {
      Bound& bound = bound_.emplace_back();
      readers[e.host.index()].get(bound.blob);
      readers[e.host.index()].get(bound.plain);
    }
    for (std::size_t h = 0; h < all.size(); ++h) {
      if (readers[h].complete()) continue;
      throw Error("host " + std::to_string(h) +
                      " sent a malformed list of addresses; check that every host runs the same "
                      "ghostrank",
                  ErrorKind::environment);
    }
  }

  // Refuses flows between two local addresses of one namespace: the kernel would not send them over
  // the network.
  void refuse_short_cuts() {
    std::set<std::pair<std::string, std::string>> asked;  // namespace or node, address
    for (const Flow& flow : flows_.flows()) {
      for (std::size_t end = 0; end < 2; ++end) {
        const auto mine = static_cast<std::size_t>(flow.end[end]);
        const auto other = static_cast<std::size_t>(flow.end[1 - end]);
        const FlowEndpoint& e = flows_.endpoints()[mine];
        const std::string inside = namespace_of(e);
        if (e.host != host_ || !asked.insert({inside, bound_[other].plain}).second) continue;
        const InNamespace entered(inside);
        if (!is_short_cut(bound_[other].plain)) continue;
        throw Error(spec_.source_of("fabric.colocated") + ": fabric.colocated: wire: what node " +
                        to_string(e.node) + " (" + bound_[mine].plain + ") sends to node " +
                        to_string(flows_.endpoints()[other].node) + " (" + bound_[other].plain +
                        ") would not leave this machine, as both addresses are local " +
                        (inside.empty() ? "here" : "in namespace " + inside) +
                        "; give every emulated node a network namespace with an interface of its "
                        "own and name them with fabric.namespaces, or use colocated: memory",
                    ErrorKind::environment);
      }
    }
  }

  void connect(int shard) {
    std::vector<FabricFlow> list;
    for (const FlowEnd& e : flows_.of(host_, shard)) {
      const Flow& flow = flows_.flows()[e.flow];
      const auto near = static_cast<std::size_t>(e.end), far = 1 - near;
      const auto other = static_cast<std::size_t>(flow.end[far]);
      const FlowEndpoint& there = flows_.endpoints()[other];
      std::string name = "host " + to_string(there.host);
      if (there.nic >= Nic(0)) name += ", NIC " + to_string(there.nic);
      list.push_back({position_[flow.end[near]], bound_[other].blob, std::move(name),
                      static_cast<std::uint32_t>(flow.index[far])});
    }
    with_source(spec_, [&] { out_.fabrics[shard]->connect(list); });
  }

  // Sends an empty message over every flow from its end `from`, and waits for those that arrive
  // here. The opening end (0) goes first, then the other, so that both ends never open a flow at
  // once.
  void say_hello(int from) {
    std::vector<std::size_t> awaited(shards_);
    for (int s = 0; s < shards_; ++s) {
      const std::vector<FlowEnd>& mine = flows_.of(host_, s);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        if (mine[i].end != from) {
          ++awaited[s];
          continue;
        }
        Message hello;
        hello.header.nonce = nonce_;
        hello.header.kind = MessageKind::probe;
        while (!out_.fabrics[s]->try_send(static_cast<int>(i), hello)) {
          poll(awaited);
        }
      }
    }
    const auto open = [&] {
      bool any = false;
      for (std::size_t s = 0; s < awaited.size(); ++s)
        any |= awaited[s] > 0 || !out_.fabrics[s]->idle();
      return any;
    };
    while (open()) poll(awaited);
    all_gather_or_throw(control_, "");
  }

  // A pair of addresses. Whether large frames pass depends on it alone, not on the number of flows.
  struct Path {
    Host host;  // the far end
    std::string from, to;
    auto operator<=>(const Path&) const = default;
  };
  Path path_of(const FlowEnd& mine, bool outward) const {
    const Flow& flow = flows_.flows()[mine.flow];
    const auto near = static_cast<std::size_t>(flow.end[mine.end]);
    const auto far = static_cast<std::size_t>(flow.end[1 - mine.end]);
    const std::string &here = bound_[near].plain, &there = bound_[far].plain;
    return {flows_.endpoints()[far].host, outward ? here : there, outward ? there : here};
  }

  // Sends a large message over each path; small ones have passed already. If frames exceed what the
  // path carries, no large message will ever arrive and nothing reports it, so a timeout does.
  void say_much(std::uint64_t bytes) {
    give_up_ns_ = std::min(
        give_up_ns_, monotonic_ns() + static_cast<std::int64_t>(
                                          std::min(kLongestMuch, spec_.run.stall_timeout_s) * 1e9));
    std::set<Path> outgoing;
    for (int s = 0; s < shards_; ++s)
      for (const FlowEnd& mine : flows_.of(host_, s)) unheard_.insert(path_of(mine, false));
    for (int s = 0; s < shards_; ++s) {
      const std::vector<FlowEnd>& mine = flows_.of(host_, s);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        if (!outgoing.insert(path_of(mine[i], true)).second) continue;
        last_much_ = path_of(mine[i], true);
        Message much;
        much.header.nonce = nonce_;
        much.header.kind = MessageKind::probe;
        much.header.bytes = bytes & kMostBytes;
        much.header.source = mine[i].flow;
        much.header.target = mine[i].end;
        while (!out_.fabrics[s]->try_send(static_cast<int>(i), much)) hear_much();
      }
    }
    const auto busy = [](const auto& fabric) { return !fabric->idle(); };
    while (!unheard_.empty() || std::any_of(out_.fabrics.begin(), out_.fabrics.end(), busy))
      hear_much();
    all_gather_or_throw(control_, "");
  }

  void hear_much() {
    std::vector<Message> arrived;
    for (const auto& fabric : out_.fabrics) look(*fabric, arrived, shards_ == 1);
    for (const Message& m : arrived) {
      if (m.header.source < 0 || m.header.source >= std::ssize(flows_.flows())) continue;
      unheard_.erase(path_of({m.header.source, m.header.target == 0 ? 1 : 0}, false));
    }
    check_stop();
    if (monotonic_ns() < give_up_ns_) return;
    const Path& path = unheard_.empty() ? last_much_ : *unheard_.begin();
    throw Error("between " + path.from + " and " + path.to + " (host " + to_string(path.host) +
                    ") small frames pass, large ones do not: check the MTU of both interfaces and "
                    "of every switch between them ('ping -M do -s 1472 ADDRESS' finds 1500; "
                    "'ip link set DEVICE mtu 1500' sets it)",
                ErrorKind::environment);
  }

  static void look(NetworkFabric& fabric, std::vector<Message>& arrived, bool alone) {
    fabric.poll(arrived);
    if (arrived.empty() && alone)
      fabric.wait(std::chrono::milliseconds(1), std::chrono::nanoseconds(0));
    if (!fabric.failure().empty()) throw Error(fabric.failure(), ErrorKind::environment);
  }

  void check_stop() const {
    if (control_.stop() != Stop::none) throw_stopped(control_);
  }

  void poll(std::vector<std::size_t>& awaited) {
    std::vector<Message> arrived;
    for (std::size_t s = 0; s < awaited.size(); ++s) {
      look(*out_.fabrics[s], arrived, awaited.size() == 1);
      awaited[s] -= arrived.size();
      arrived.clear();
    }
    check_stop();
    if (monotonic_ns() > give_up_ns_)
      throw Error("flows could not be opened within " +
                      std::to_string(control_.world().timeout.count()) + " s; check that " +
                      (spec_.network_switch.target == SwitchTarget::external
                           ? "the switch of switch.target runs and forwards, that "
                           : "") +
                      "no firewall is between the hosts, that all addresses of fabric.bind reach "
                      "each other, or raise GHOSTRANK_TIMEOUT_S",
                  ErrorKind::environment);
  }

  const JobSpec& spec_;
  const Flows& flows_;
  Control& control_;
  const std::uint64_t nonce_;
  const Host host_;
  const int shards_;
  const bool wire_;
  const std::int64_t began_ns_ = monotonic_ns();
  std::set<std::tuple<int, std::string, std::string>> logged_;  // rail, namespace, address
  std::vector<int> position_;  // index of a local endpoint in its fabric, by global endpoint
  std::vector<EndpointBinding> bindings_;  // by global endpoint
  std::vector<Bound> bound_;               // by global endpoint
  std::set<Path> unheard_;                 // paths to here that still await their large message
  Path last_much_;                         // path from here that was tried last
  std::int64_t give_up_ns_ =
      monotonic_ns() + std::chrono::nanoseconds(control_.world().timeout).count();
  OpenedFlows out_;
};

}  // namespace

OpenedFlows open_flows(const JobSpec& spec, const Flows& flows, Control& control,
                       std::uint64_t nonce) {
  try {
    return FlowSetup(spec, flows, control, nonce).open();
  } catch (const Error& e) {
    control.fail("host " + std::to_string(control.world().rank) + ": " + e.what());
    throw;
  }
}

}  // namespace ghostrank
