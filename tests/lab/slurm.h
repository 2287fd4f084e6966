// A Slurm of a lab's own: munged, slurmctld and a slurmd for each of its first hosts, which are the
// nodes s1, s2, .. of one partition. Every node has a hostname, an /etc/hosts and a network of its
// own (namespaces of the kernel); configuration, keys, state and sockets lie in the lab's
// directory. Nothing of the machine's own Slurm, munge or names is read or touched.
//
//   host 0 = s1: slurmctld, slurmd, munged      host 1 = s2: slurmd      ..
//
// No cgroups: steps are followed by their processes' parents. It ends with the lab. Threading: that
// of the lab.
#pragma once

#include <string>
#include <sys/types.h>

#include "tests/lab/lab.h"

namespace ghostrank::testing {

class Slurm {
 public:
  // What a Slurm needs and is not installed, by name; empty where one can be started.
  static std::string missing();

  // Returns when every node is idle; throws std::runtime_error, with what the daemons say, when
  // that takes longer than half a minute. `lab` must outlive this.
  Slurm(Lab& lab, int nodes);

  static std::string node(int host) { return "s" + std::to_string(host + 1); }
  // `command` as a user gives it at a node, in the lab's directory and without variables of another
  // launcher.
  std::string at(int host, const std::string& command) const;
  // Jobs that have not ended, as squeue lists them; empty when there is none.
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
