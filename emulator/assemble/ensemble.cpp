#include "emulator/assemble/ensemble.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/epoll.h>
#include <sys/random.h>

#include "emulator/assemble/capacity.h"
#include "emulator/assemble/flow_setup.h"
#include "emulator/assemble/switch_setup.h"
#include "emulator/common/blob.h"
#include "emulator/common/log.h"
#include "emulator/common/require_fd.h"
#include "emulator/fabric/local.h"
#include "emulator/fabric/open.h"
#include "emulator/host/cores.h"
#include "emulator/host/host_facts.h"
#include "emulator/host/hosts.h"
#include "profiles/error.h"
#include "profiles/input/content_hash.h"
#include "profiles/load/compared_job.h"
#include "profiles/load/load.h"
#include "profiles/load/program_file.h"

namespace ghostrank {
namespace {

// All processes run the same build, so a malformed message means a mismatched binary or tampering.
void require_whole(const BlobReader& r, std::size_t host) {
  if (r.complete()) return;
  throw Error("host " + std::to_string(host) +
                  " sent a malformed message before the start; check that every host runs the "
                  "same ghostrank",
              ErrorKind::environment);
}

constexpr double kTightBps = 1e9;

constexpr std::size_t kLongestSent = 1 << 16, kLongestShown = 60, kShownBefore = 20;

// Of two values that differ, the first as an error shows it: whole if both are short, else from
// shortly before the first difference on.
std::string where_it_differs(const std::string& value, const std::string& other) {
  const auto at = static_cast<std::size_t>(
      std::mismatch(value.begin(), value.end(), other.begin(), other.end()).first - value.begin());
  const bool is_short = std::max(value.size(), other.size()) <= kLongestShown;
  const std::size_t from = is_short || at < kShownBefore ? 0 : at - kShownBefore;
  return (from > 0 ? "..." : "") + value.substr(from, kLongestShown) +
         (value.size() > from + kLongestShown ? "..." : "");
}

class Assembly {
 public:
  Assembly(const LoadedJob& job, const Cluster& cluster, const Flows& flows, Control& control,
           NetworkSwitch* network_switch)
      : spec_(job.spec),
        job_(job),
        cluster_(cluster),
        flows_(flows),
        control_(control),
        switch_(network_switch),
        host_(control.world().host()),
        hosts_(control.world().size),
        virtual_(spec_.fabric.kind == FabricKind::virtual_time) {}

  Ensemble assemble(const std::vector<int>& cpus) {
    agree();
    open_fabrics();
    out_.switch_packets = open_switch(spec_, cluster_, control_, switch_);
    watch_packets();
    // On the CPUs of all engine threads, as each of them decides it: the probe waits as they do.
    const auto awake = awake_before_sleep(cluster_.hosts() * cluster_.shards());
    const StayOn there(cpus.empty() ? cpus_of_this_thread() : cpus);
    measure(awake);
    return std::move(out_);
  }

 private:
  // Checks that all processes play the same job with the same files; process 0 draws the nonce.
  void agree() {
    if (host_ == Host(0) && getrandom(&out_.nonce, sizeof out_.nonce, 0) != sizeof out_.nonce) {
      throw Error("getrandom failed; the kernel's random source is needed for the run's nonce",
                  ErrorKind::environment);
    }
    const std::uint64_t config = content_hash(config_without_paths(job_));
    const std::uint64_t files = hosts_ > 1 ? content_hash(contents_of_files(spec_)) : 0;
    BlobWriter hello;
    hello.put(out_.nonce), hello.put(config), hello.put(files), hello.put(host_name());
    std::vector<std::string> all = all_gather_or_throw(control_, hello.bytes());
    std::uint64_t config0 = 0, files0 = 0;
    std::vector<std::uint64_t> configs;
    for (std::size_t h = 0; h < all.size(); ++h) {
      BlobReader r(all[h]);
      std::uint64_t nonce = 0, theirs = 0, their_files = 0;
      HostReport host;
      r.get(nonce), r.get(theirs), r.get(their_files), r.get(host.hostname);
      require_whole(r, h);
      if (h == 0) {
        out_.nonce = nonce;
        config0 = theirs;
        files0 = their_files;
      }
      configs.push_back(theirs);
      if (their_files != files0 && theirs == config0)
        refuse(h, host.hostname,
               "its plugins, algorithm files, programs or traces differ; give all processes the "
               "same files");
      host.index = Host(h);
      host.provider = host.transport = virtual_ ? "virtual" : "memory";
      for (int s = 0; s < cluster_.shards(); ++s) {
        host.ranks += static_cast<int>(cluster_.ranks_of(host.index, s).size());
      }
      out_.hosts.push_back(host);
    }
    for (std::size_t h = 0; h < configs.size(); ++h)
      if (configs[h] != config0) refuse(h, out_.hosts[h].hostname, differing_keys(h));
    log_info("all processes (", hosts_, ") play the same job");
  }

  [[noreturn]] static void refuse(std::size_t host, const std::string& name,
                                  const std::string& why) {
    throw Error("host " + std::to_string(host) + " (" + name +
                ") plays another job than host 0: " + why);
  }

  // Names the settings that differ between host 0 and `host`. Every process calls it: all know that
  // the jobs differ, and now exchange their keys.
  std::string differing_keys(std::size_t host) {
    constexpr std::size_t kShown = 3;
    const std::vector<ComparedKey> keys = compared_keys(job_);
    BlobWriter mine;
    mine.put(static_cast<std::uint64_t>(keys.size()));
    for (const ComparedKey& key : keys)
      mine.put(key.path), mine.put(content_hash(key.given)), mine.put(content_hash(key.resolved)),
          mine.put(key.given.substr(0, kLongestSent));
    const std::vector<std::string> all = all_gather_or_throw(control_, mine.bytes());
    std::string differ;
    std::size_t found = 0;
    BlobReader first(all[0]), other(all[host]);
    std::uint64_t count = 0, count_there = 0;
    for (first.get(count), other.get(count_there); count > 0 && !first.bad() && !other.bad();
         --count) {
      std::string path, path_there, value, value_there;
      std::uint64_t given = 0, given_there = 0, resolved = 0, resolved_there = 0;
      first.get(path), first.get(given), first.get(resolved), first.get(value);
      other.get(path_there), other.get(given_there), other.get(resolved_there),
          other.get(value_there);
      if (resolved == resolved_there || found++ >= kShown) continue;
      const bool same_name = given == given_there;  // of a file or profile
      differ += (differ.empty() ? "" : ", ") + path + " is " +
                where_it_differs(value_there, value) + ", " +
                (same_name ? "whose text is another one there"
                           : "there " + where_it_differs(value, value_there));
    }
    return (differ.empty() ? "its job file or flags differ"
                           : differ + (found > kShown ? ", ..." : "")) +
           "; start all processes with the same job file and flags";
  }

  // Opens and closes a fabric as the job describes it even though no data will cross it, so that a
  // mistake shows now and not on the day when there are several hosts.
  void try_fabric() {
    const HostEntry* entry = host_entry(spec_, host_, hosts_);
    const std::size_t rails = entry ? entry->nics.size() : 0;
    if (spec_.fabric.provider == "auto" && spec_.fabric.bind.empty() && rails == 0) return;
    FabricOptions o;
    o.provider = spec_.fabric.provider;
    o.endpoints.clear();
    for (std::size_t nic = 0; nic < std::max<std::size_t>(1, rails); ++nic)
      o.endpoints.push_back({data_address(spec_, host_, hosts_, control_.world().master_address,
                                          static_cast<int>(nic)),
                             ""});
    open_fabric(spec_.fabric.kind, o);
    log_info("one process: provider ", spec_.fabric.provider, " opens, nothing will cross it");
  }

  void open_fabrics() {
    if (flows_.flows().empty()) {
      if (is_network(spec_.fabric.kind)) try_fabric();
      for (int s = 0; s < cluster_.shards(); ++s) out_.fabrics.push_back(make_local_fabric());
      return;
    }
    OpenedFlows opened = open_flows(spec_, flows_, control_, out_.nonce);
    for (auto& fabric : opened.fabrics) out_.fabrics.push_back(std::move(fabric));
    out_.packets = std::move(opened.packets);
    out_.interfaces = std::move(opened.interfaces);
    out_.stream_bps = opened.stream_bps;
    for (std::size_t h = 0; h < out_.hosts.size(); ++h) {
      out_.hosts[h].provider = opened.providers[h];
      out_.hosts[h].transport = opened.transports[h];
      log_info("process ", h, " on ", out_.hosts[h].hostname, ": provider ", opened.providers[h],
               ", transport ", opened.transports[h]);
    }
    out_.hosts[host_.index()].libfabric = fabric_library_version(spec_.fabric.kind);
  }

  // Makes the fabrics' waits end for packets, too, so that one wait covers all.
  void watch_packets() {
    for (std::size_t s = 0; s < out_.fabrics.size(); ++s) {
      std::vector<int> fds;
      if (!out_.packets.empty()) fds.push_back(out_.packets[s]->wait_fd());
      if (!out_.switch_packets.empty()) fds.push_back(out_.switch_packets[s]->wait_fd());
      if (fds.empty()) continue;
      Fd all = require_fd(epoll_create1(EPOLL_CLOEXEC));
      for (const int fd : fds) {
        epoll_event event{};
        event.events = EPOLLIN;
        if (epoll_ctl(all.get(), EPOLL_CTL_ADD, fd, &event) != 0)
          throw Error(std::string("epoll_ctl: ") + std::strerror(errno), ErrorKind::environment);
      }
      out_.fabrics[s]->watch(all.get());
      out_.watched.push_back(std::move(all));
    }
  }

  // Measures the capacity of the slowest process, so that all draw the same conclusions.
  void measure(std::chrono::nanoseconds awake) {
    if (virtual_) return;
    const bool wired = !flows_.flows().empty();
    share_cap();
    // Below a tight cap a probe would take longer than its time, and tell nothing new.
    const bool tight = out_.stream_bps > 0 && out_.stream_bps < kTightBps;
    const bool probe = wired && spec_.run.probe_ms > 0 && !tight;
    if (tight) out_.wire_bytes_per_second = out_.stream_bps / 8;
    if (wired && !probe && !tight && spec_.dilation == 0) {
      throw Error(spec_.source_of("scale.dilation") +
                  ": scale.dilation: auto needs run.probe_ms > 0, or give a number");
    }
    if (probe) {
      out_.wire_bytes_per_second =
          measure_wire(control_, flows_, *out_.fabrics[0], out_.nonce, spec_.run.probe_ms, awake,
                       spec_.run.stall_timeout_s);
    }
    out_.seconds_per_message = std::ranges::max(of_every_process(measure_engine()));
    log_info("measured: the slowest engine needs ", out_.seconds_per_message * 1e9,
             " ns per message");
    if (probe) log_info("measured: the wire carries ", out_.wire_bytes_per_second * 1e-9, " GB/s");
  }

  // The tightest cap counts everywhere, so that all draw the same conclusions.
  void share_cap() {
    if (spec_.max_nic_bps <= 0) return;
    for (const double theirs : of_every_process(out_.stream_bps))
      if (theirs > 0)
        out_.stream_bps = out_.stream_bps == 0 ? theirs : std::min(out_.stream_bps, theirs);
  }

  // The numbers that all processes found, this one's among them.
  std::vector<double> of_every_process(double mine) {
    BlobWriter blob;
    blob.put(mine);
    const std::vector<std::string> all = all_gather_or_throw(control_, blob.bytes());
    std::vector<double> numbers(all.size());
    for (std::size_t h = 0; h < all.size(); ++h) {
      BlobReader r(all[h]);
      r.get(numbers[h]);
      require_whole(r, h);
    }
    return numbers;
  }

  const JobSpec& spec_;
  const LoadedJob& job_;
  const Cluster& cluster_;
  const Flows& flows_;
  Control& control_;
  NetworkSwitch* const switch_;
  const Host host_;
  const int hosts_;
  const bool virtual_;
  Ensemble out_;
};

}  // namespace

Ensemble assemble(const LoadedJob& job, const Cluster& cluster, const Flows& flows,
                  Control& control, NetworkSwitch* network_switch, const std::vector<int>& cpus) {
  return Assembly(job, cluster, flows, control, network_switch).assemble(cpus);
}

}  // namespace ghostrank
