#include "emulator/ensemble.h"

#include <algorithm>
#include <sys/random.h>

#include "emulator/blob.h"
#include "emulator/capacity.h"
#include "emulator/cores.h"
#include "emulator/fabric/local.h"
#include "emulator/flow_setup.h"
#include "emulator/host_facts.h"
#include "profiles/algorithms.h"
#include "profiles/content_hash.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

// Processes of one build understand each other, or one of them is not what it seems.
void require_whole(const BlobReader& r, std::size_t host) {
  if (r.complete()) return;
  throw Error("host " + std::to_string(host) +
                  " sent a malformed message before the start; check that every host runs the "
                  "same ghostrank",
              ErrorKind::environment);
}

class Assembly {
 public:
  Assembly(const LoadedJob& job, const Cluster& cluster, const Flows& flows, Control& control)
      : spec_(job.spec),
        job_(job),
        cluster_(cluster),
        flows_(flows),
        control_(control),
        host_(control.world().rank),
        hosts_(control.world().size),
        virtual_(spec_.fabric.kind == FabricKind::virtual_time) {}

  Ensemble assemble(const std::vector<int>& cpus) {
    agree();
    open_fabrics();
    const StayOn there(cpus.empty() ? cpus_of_this_thread() : cpus);
    measure();
    return std::move(out_);
  }

 private:
  // All processes play the same job with the same build; process 0 draws the nonce.
  void agree() {
    if (host_ == 0 && getrandom(&out_.nonce, sizeof out_.nonce, 0) != sizeof out_.nonce) {
      throw Error("getrandom failed; the kernel's random source is needed for the run's nonce",
                  ErrorKind::environment);
    }
    const auto& own = spec_.collectives.own;  // files and plugins, by content
    const std::uint64_t config = content_hash(job_.config_json);
    const std::uint64_t algorithms = content_hash(own ? own->contents() : "");
    BlobWriter hello;
    hello.put(out_.nonce), hello.put(config), hello.put(algorithms), hello.put(host_name());
    std::vector<std::string> all = gathered(hello.bytes());
    std::uint64_t config0 = 0, algorithms0 = 0;
    for (std::size_t h = 0; h < all.size(); ++h) {
      BlobReader r(all[h]);
      std::uint64_t nonce = 0, theirs = 0, their_algorithms = 0;
      HostReport host;
      r.get(nonce), r.get(theirs), r.get(their_algorithms), r.get(host.hostname);
      require_whole(r, h);
      if (h == 0) {
        out_.nonce = nonce;
        config0 = theirs;
        algorithms0 = their_algorithms;
      }
      if (theirs != config0 || their_algorithms != algorithms0) {
        const bool same_job = theirs == config0;
        throw Error("host " + std::to_string(h) + " (" + host.hostname +
                    ") plays another job than host 0: " +
                    (same_job ? "its plugins or algorithm files differ; give all processes the "
                                "same files"
                              : "its job file or flags differ; start all processes with the same "
                                "ones"));
      }
      host.index = static_cast<int>(h);
      host.provider = host.transport = virtual_ ? "virtual" : "memory";
      for (int s = 0; s < cluster_.shards(); ++s) {
        host.ranks += static_cast<int>(cluster_.ranks_of(host.index, s).size());
      }
      out_.hosts.push_back(host);
    }
  }

  std::vector<std::string> gathered(std::string_view blob) {
    std::vector<std::string> all = control_.all_gather(blob);
    if (all.empty())
      throw Error("stopped before the start: " + control_.stop_reason(), ErrorKind::environment);
    return all;
  }

  void open_fabrics() {
    if (flows_.flows().empty()) {
      for (int s = 0; s < cluster_.shards(); ++s) out_.fabrics.push_back(make_local_fabric());
      return;
    }
    OpenedFlows opened = open_flows(spec_, flows_, control_, out_.nonce);
    for (auto& fabric : opened.fabrics) out_.fabrics.push_back(std::move(fabric));
    out_.packets = std::move(opened.packets);
    out_.interfaces = std::move(opened.interfaces);
    for (std::size_t h = 0; h < out_.hosts.size(); ++h) {
      out_.hosts[h].provider = opened.providers[h];
      out_.hosts[h].transport = opened.transports[h];
    }
  }

  // What every process can carry, so that all of them draw the same conclusions.
  void measure() {
    if (virtual_) return;
    const bool wired = !flows_.flows().empty();
    const bool probe = wired && spec_.run.probe_ms > 0;
    if (wired && !probe && spec_.dilation == 0) {
      throw Error("scale.dilation: auto needs run.probe_ms > 0, or give a number");
    }
    if (probe) {
      out_.wire_bytes_per_second =
          measure_wire(control_, flows_, *out_.fabrics[0], out_.nonce, spec_.run.probe_ms,
                       awake_before_sleep(cluster_.hosts() * cluster_.shards()));
    }
    BlobWriter mine;
    mine.put(measure_engine());
    const std::vector<std::string> all = gathered(mine.bytes());
    for (std::size_t h = 0; h < all.size(); ++h) {
      double theirs = 0;
      BlobReader r(all[h]);
      r.get(theirs);
      require_whole(r, h);
      out_.seconds_per_message = std::max(out_.seconds_per_message, theirs);
    }
  }

  const JobSpec& spec_;
  const LoadedJob& job_;
  const Cluster& cluster_;
  const Flows& flows_;
  Control& control_;
  const int host_, hosts_;
  const bool virtual_;
  Ensemble out_;
};

}  // namespace

Ensemble assemble(const LoadedJob& job, const Cluster& cluster, const Flows& flows,
                  Control& control, const std::vector<int>& cpus) {
  return Assembly(job, cluster, flows, control).assemble(cpus);
}

}  // namespace ghostrank
