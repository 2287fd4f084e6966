// Slurm inside a lab: munged, slurmctld, and a slurmd for each of the lab's first hosts, which are
// the nodes s1, s2, .. of one partition. Every node has its own hostname, /etc/hosts and network
// (kernel namespaces); configuration, keys, state and sockets are in the lab's directory. Slurm,
// munge and names of the machine itself are neither read nor touched.
//
//   host 0 = s1: slurmctld, slurmd, munged      host 1 = s2: slurmd      ..
//
// No cgroups: Slurm tracks steps by their processes' parents. Ends with the lab. Threading: the
// lab's thread.
#pragma once

#include <string>
#include <sys/types.h>

#include "tests/lab/lab.h"

namespace ghostrank::testing {

class Slurm {
 public:
  // The missing programs, by name; empty when a Slurm can be started.
  static std::string missing();

  // Returns when every node is idle. Throws std::runtime_error with the daemons' output when that
  // takes more than 30 s. `lab` must outlive this object.
  Slurm(Lab& lab, int nodes);

  static std::string node(int host) { return "s" + std::to_string(host + 1); }
  // `command` prefixed so that it runs on a node as if a user typed it: in the lab's directory and
  // without another launcher's variables.
  std::string at(int host, const std::string& command) const;
  // Jobs that have not ended, as squeue lists them; empty when there are none.
  std::string queue() const;

 private:
  void write_files() const;
  void start_daemons();
  bool ready() const;
  std::string log() const;

  Lab& lab_;
  const int nodes_;
};

}  // namespace ghostrank::testing
