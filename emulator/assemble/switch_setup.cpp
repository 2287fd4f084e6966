#include "emulator/assemble/switch_setup.h"

#include <algorithm>
#include <map>
#include <poll.h>
#include <set>
#include <string>

#include "collectives/wire_format.h"
#include "emulator/assemble/binding.h"
#include "emulator/common/blob.h"
#include "emulator/common/clock.h"
#include "emulator/common/log.h"
#include "emulator/host/link_layer.h"
#include "emulator/host/network_namespace.h"
#include "emulator/packets/switch_sockets.h"
#include "profiles/error.h"
#include "profiles/job/key_error.h"

namespace ghostrank {
namespace {

constexpr int kPatience = 6;
constexpr std::int64_t kFirstRoundNs = 20'000'000, kLongestRoundNs = 640'000'000;  // each doubled
constexpr std::size_t kInFlight = 32;  // greetings of a rank without an answer
constexpr int kPortStep = 16;  // a switch adds the low four bits of its own port to a worker's

class SwitchSetup {
 public:
  SwitchSetup(const JobSpec& spec, const Cluster& cluster, Control& control, NetworkSwitch* sw)
      : spec_(spec),
        cluster_(cluster),
        control_(control),
        switch_(sw),
        host_(control.world().host()) {}

  std::vector<std::unique_ptr<Packets>> open() {
    for (int s = 0; s < cluster_.shards(); ++s) open_sockets(s);
    admit(all_gather_or_throw(control_, addresses_.bytes()));
    greet();
    return std::move(packets_);
  }

 private:
  // A rank's greeting, and which of its notes the switch has not answered.
  struct Greeting {
    std::size_t shard = 0;
    int flow = 0;
    SwitchEnd end;
    SwitchService service;
    std::vector<std::size_t> unsent;            // indexes into service.greeting, last one first
    std::map<std::uint32_t, std::size_t> sent;  // by Note::index, in this round
    bool done() const { return unsent.empty() && sent.empty(); }
  };

  // The workers of a rail, by number.
  using Workers = std::map<int, std::pair<SwitchEnd, SwitchJob::Worker>>;

  const SchemeUse& use(const SwitchEnd& end) const { return cluster_.schemes()[end.scheme]; }
  WorldRank rank_of(const SwitchEnd& end) const {
    return WorldRank(cluster_.world_party(use(end), end.position).value());
  }
  // The helper to which the worker's packets go, whoever plays it: the rail's, or where a rail has
  // switches in racks the one whose rack the worker is in.
  GroupParty switch_of(const SwitchEnd& end, const SwitchService& service) const {
    const std::vector<Helper>& all = use(end).helpers;
    const std::size_t of_rail = all.size() / service.rails.size();
    const auto& workers = service.rails[static_cast<std::size_t>(end.rail)];
    std::size_t found = static_cast<std::size_t>(end.rail) * of_rail;
    for (std::size_t i = found; i < (static_cast<std::size_t>(end.rail) + 1) * of_rail; ++i) {
      const auto first = std::ranges::find(workers, all[i].near);
      if (all[i].level == 0 && first - workers.begin() <= end.number) found = i;
    }
    return use(end).ends->size() + static_cast<GroupParty>(found);
  }
  // The communicators that the switch serves, of the first `schemes` ones.
  std::uint32_t served(std::uint32_t schemes) const {
    const auto first = cluster_.schemes().begin();
    return static_cast<std::uint32_t>(
        std::count_if(first, first + schemes, [](const SchemeUse& u) { return u.outside; }));
  }
  std::uint16_t port_of(std::uint32_t scheme) const {
    const std::uint32_t port = spec_.network_switch.worker_port + kPortStep * served(scheme);
    if (port > 0xffff - kPortStep)
      throw Error(spec_.source_of("switch.worker_port") + ": switch.worker_port: " +
                  std::to_string(served(static_cast<std::uint32_t>(cluster_.schemes().size()))) +
                  " communicators need a UDP port in sixteen each, from " +
                  std::to_string(spec_.network_switch.worker_port) +
                  " on; use fewer, or a smaller port");
    return static_cast<std::uint16_t>(port);
  }

  void open_sockets(int shard) {
    std::vector<SwitchSocket> sockets;
    for (const SwitchEnd& end : cluster_.switch_ends(host_, shard)) {
      const Location& here = cluster_.location(rank_of(end));
      SwitchService service = *use(end).ends->switch_service();
      SwitchSocket& s = sockets.emplace_back();
      s.binding = binding_of_nic(spec_, control_.world(), here.node, here.nic);
      s.port = port_of(end.scheme);
      s.switch_address = spec_.network_switch.address;
      s.switch_port = service.port;
      s.arrivals.group = end.scheme;
      s.arrivals.source = switch_of(end, service);
      s.arrivals.target = rank_of(end).value();
      s.arrivals.kind = MessageKind::note;
      const NetworkDevice device = know_each_other(s.binding);
      // NICs of a node may be in networks of their own, and the switch in one of these.
      if (spec_.network_switch.nics > 1) s.device = device.name;
      addresses_.put(end.scheme), addresses_.put(end.rail), addresses_.put(end.number);
      addresses_.put(s.binding.address), addresses_.put(device.mac);
      greetings_.push_back({static_cast<std::size_t>(shard),
                            static_cast<int>(sockets.size()) - 1,
                            end,
                            service,
                            {},
                            {}});
    }
    packets_.push_back(
        with_source(spec_, [&] { return open_switch_sockets(sockets, spec_.fabric.packets.mtu); }));
  }

  // Lets the rank's machine find the switch, which need not answer ARP; returns the rank's own
  // device.
  NetworkDevice know_each_other(const EndpointBinding& binding) const {
    const InNamespace inside(binding.network_namespace);
    NetworkDevice device = device_of_address(binding.address);
    if (!spec_.network_switch.mac.empty())
      set_neighbour(device.name, spec_.network_switch.address, spec_.network_switch.mac);
    return device;
  }

  // Process 0 tells the switch; the others wait, and learn of a failure from `control`.
  void admit(const std::vector<std::string>& all) {
    std::map<std::pair<std::uint32_t, int>, Workers> rails;  // by scheme and rail
    for (const std::string& blob : all) {
      for (BlobReader r(blob); !r.complete() && !r.bad();) {
        SwitchEnd end;
        SwitchJob::Worker worker;
        r.get(end.scheme), r.get(end.rail), r.get(end.number), r.get(worker.ip), r.get(worker.mac);
        if (r.bad() || !find(end))
          throw Error(
              "a process sent a malformed list of the switch's workers; check that every "
              "host runs the same ghostrank",
              ErrorKind::environment);
        const Location& at = cluster_.location(rank_of(end));
        worker.port = at.node.value() * spec_.network_switch.nics;
        if (spec_.network_switch.nics > 1) worker.port += at.nic.value() % cluster_.nics_per_node();
        rails[{end.scheme, end.rail}].emplace(end.number, std::pair(end, std::move(worker)));
      }
    }
    refuse_shared_addresses(rails);
    for (const auto& [which, workers] : rails) {
      if (host_ != Host(0) || !switch_) continue;
      const auto [scheme, rail] = which;
      const SwitchService service = *cluster_.schemes()[scheme].ends->switch_service();
      std::string name = "ghostrank-" + std::to_string(served(scheme));
      if (service.rails.size() > 1) name += ".rail" + std::to_string(rail);
      SwitchJob job{name,
                    service.elements,
                    first_slot(scheme),
                    service.slots,
                    port_of(scheme),
                    {},
                    cluster_.schemes()[scheme].all_functions,
                    std::string(service.format)};
      for (const auto& [number, worker] : workers) job.workers.push_back(worker.second);
      if (const std::string why = switch_->admit(job); !why.empty())
        throw Error("the switch does not take " + describe(scheme) + ": " + why,
                    ErrorKind::environment);
    }
    all_gather_or_throw(control_, "");
  }

  // Sets the position of a worker; false: there is no such worker.
  bool find(SwitchEnd& end) const {
    if (end.scheme >= cluster_.schemes().size() || !use(end).outside) return false;
    const auto rails = use(end).ends->switch_service()->rails;
    const auto within = [](int i, const auto& list) { return i >= 0 && i < std::ssize(list); };
    if (!within(end.rail, rails)) return false;
    const auto& workers = rails[static_cast<std::size_t>(end.rail)];
    if (!within(end.number, workers)) return false;
    end.position = workers[static_cast<std::size_t>(end.number)];
    return true;
  }

  int first_slot(std::uint32_t scheme) const { return cluster_.schemes()[scheme].first_slot; }
  std::string describe(std::uint32_t scheme) const {
    const SchemeUse& u = cluster_.schemes()[scheme];
    return std::string(u.name) + "'s group of " + std::to_string(u.ends->size()) +
           " ranks (slots " + std::to_string(u.first_slot) + " to " +
           std::to_string(u.first_slot + u.ends->switch_service()->slots - 1) + ")";
  }

  void refuse_shared_addresses(
      const std::map<std::pair<std::uint32_t, int>, Workers>& rails) const {
    std::map<std::pair<std::uint32_t, std::string>, WorldRank> seen;  // by scheme and address
    for (const auto& [which, workers] : rails)
      for (const auto& [number, worker] : workers) {
        const WorldRank rank = rank_of(worker.first);
        const auto [other, fresh] = seen.emplace(std::pair(which.first, worker.second.ip), rank);
        if (fresh) continue;
        throw Error(spec_.source_of("switch.target") + ": switch.target: ranks " +
                    to_string(other->second) + " and " + to_string(rank) +
                    " of one group both send from " + worker.second.ip +
                    ", and a switch tells its workers apart by their addresses; give every node a "
                    "network namespace of its own (fabric.namespaces), and in it every NIC an "
                    "interface (cluster.nics_per_node)");
      }
  }

  // ---- Greeting

  // A scheme's greeting has a packet for every slot, or several that follow each other there: all
  // ranks have the answers to one turn before the next one begins.
  void greet() {
    std::size_t turns = 0;
    for (const SchemeUse& u : cluster_.schemes()) {
      if (!u.outside) continue;
      const SwitchService service = *u.ends->switch_service();
      turns = std::max(turns, (service.greeting.size() + service.slots - 1) / service.slots);
    }
    for (std::size_t turn = 0; turn < turns; ++turn) greet(turn);
    log_info("the switch at ", spec_.network_switch.address, " has answered every rank");
  }

  void greet(std::size_t turn) {
    for (Greeting& g : greetings_) {
      const std::size_t slots = g.service.slots;
      const std::size_t past = std::min((turn + 1) * slots, g.service.greeting.size());
      for (std::size_t i = past; i > turn * slots; --i) g.unsent.push_back(i - 1);
    }
    std::int64_t round_ns = kFirstRoundNs;
    std::uint64_t fewest = UINT64_MAX;
    for (int fruitless = 0;;) {
      const std::int64_t until = monotonic_ns() + round_ns;
      while (monotonic_ns() < until && !all_done()) look();
      send_again();
      const std::uint64_t missing = missing_of_all();
      if (missing == 0) break;
      fruitless = missing < fewest ? 0 : fruitless + 1;
      fewest = std::min(fewest, missing);
      if (fruitless == kPatience) give_up();
      round_ns = std::min(2 * round_ns, kLongestRoundNs);
    }
  }

  bool all_done() const {
    return std::all_of(greetings_.begin(), greetings_.end(),
                       [](const Greeting& g) { return g.done(); });
  }

  void send_again() {
    for (Greeting& g : greetings_) {
      for (const auto& [index, i] : g.sent) g.unsent.push_back(i);
      g.sent.clear();
      std::sort(g.unsent.rbegin(), g.unsent.rend());
    }
  }

  void look() {
    for (Greeting& g : greetings_) {
      while (!g.unsent.empty() && g.sent.size() < kInFlight) {
        const Note& note = g.service.greeting[g.unsent.back()];
        Message m;
        const std::uint64_t bytes = note_bytes(note, use(g.end).ends->overhead_bytes());
        m.header.bytes = bytes & kMostBytes;
        m.payload = std::make_unique<std::byte[]>(bytes);
        use(g.end).ends->wire_format()->encode(note, {m.payload.get(), bytes});
        if (!packets_[g.shard]->try_send(g.flow, m)) break;
        g.sent.emplace(note.index, g.unsent.back());
        g.unsent.pop_back();
      }
    }
    for (std::size_t s = 0; s < packets_.size(); ++s) {
      packets_[s]->flush();
      if (!packets_[s]->failure().empty())
        throw Error(packets_[s]->failure(), ErrorKind::environment);
      std::vector<Message> arrived;
      if (packets_[s]->poll(arrived) == 0) {
        pollfd fd{packets_[s]->wait_fd(), POLLIN, 0};
        ::poll(&fd, 1, 1);
      }
      for (const Message& m : arrived) hear(s, m);
    }
  }

  void hear(std::size_t shard, const Message& m) {
    for (Greeting& g : greetings_) {
      if (g.shard != shard || g.end.scheme != m.header.group ||
          rank_of(g.end).value() != m.header.target)
        continue;
      std::vector<std::byte> store;
      const Ends& ends = *use(g.end).ends;
      const auto note = ends.wire_format()->decode({m.payload.get(), m.header.bytes}, store);
      if (!note || note->elements != static_cast<std::uint64_t>(g.service.elements)) {
        ++foreign_;
        return;
      }
      if (const auto found = g.sent.find(note->index); found != g.sent.end()) {
        g.sent.erase(found);
      } else {  // of an earlier round
        std::erase_if(g.unsent,
                      [&](std::size_t i) { return g.service.greeting[i].index == note->index; });
      }
    }
  }

  std::uint64_t missing_of_all() {
    std::uint64_t mine = 0;
    for (const Greeting& g : greetings_) mine += g.unsent.size() + g.sent.size();
    BlobWriter blob;
    blob.put(mine), blob.put(foreign_);
    std::uint64_t missing = 0;
    all_foreign_ = 0;
    for (const std::string& theirs : all_gather_or_throw(control_, blob.bytes())) {
      std::uint64_t count = 0, foreign = 0;
      BlobReader r(theirs);
      r.get(count), r.get(foreign);
      missing += count;
      all_foreign_ += foreign;
    }
    return missing;
  }

  [[noreturn]] void give_up() const {
    const std::string where = "the switch at switch.address " + spec_.network_switch.address;
    if (all_foreign_ > 0)
      throw Error(where + " answers with packets of another form than the scheme's (" +
                      std::to_string(all_foreign_) +
                      " came); let switch.packet_elements and its program agree",
                  ErrorKind::environment);
    for (const Greeting& g : greetings_) {
      if (g.done()) continue;
      const auto left = g.unsent.size() + g.sent.size();
      throw Error(where + " does not answer: rank " + to_string(rank_of(g.end)) +
                      " has no result for " + std::to_string(left) + " of " +
                      std::to_string(g.service.slots) +
                      " slots, and it sent to each several times; check that the switch runs, "
                      "serves this group's slots and addresses in packets of " +
                      std::to_string(g.service.elements) + " elements, and that UDP port " +
                      std::to_string(g.service.port) + " passes" +
                      (spec_.network_switch.started()
                           ? ""
                           : "; a guarded switch that has served another run has to forget it "
                             "first ('ghostrank switch reset')"),
                  ErrorKind::environment);
    }
    throw Error(where + " does not answer a rank of another process", ErrorKind::environment);
  }

  const JobSpec& spec_;
  const Cluster& cluster_;
  Control& control_;
  NetworkSwitch* const switch_;
  const Host host_;
  BlobWriter addresses_;  // scheme, rail, number, IP address and MAC of every worker here
  std::vector<Greeting> greetings_;
  std::vector<std::unique_ptr<Packets>> packets_;
  std::uint64_t foreign_ = 0, all_foreign_ = 0;  // packets in another form, here and everywhere
};

}  // namespace

std::vector<std::unique_ptr<Packets>> open_switch(const JobSpec& spec, const Cluster& cluster,
                                                  Control& control, NetworkSwitch* network_switch) {
  const auto& schemes = cluster.schemes();
  if (std::none_of(schemes.begin(), schemes.end(), [](const SchemeUse& u) { return u.outside; }))
    return {};
  try {
    return SwitchSetup(spec, cluster, control, network_switch).open();
  } catch (const Error& e) {
    control.fail("host " + std::to_string(control.world().rank) + ": " + e.what());
    throw;
  }
}

}  // namespace ghostrank
