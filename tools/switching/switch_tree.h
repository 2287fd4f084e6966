// The switches that a run starts, as one for its job: a single one, or leaves with a spine above.
//
//   node 0 ── port 0 ┐ leaf 0        leaf 1 ┌ port 0 ── node 2
//   node 1 ── port 1 ┤                      ├ port 1 ── node 3
//             port 2 ┘                      └ port 2
//                └──── port 0  spine  port 1 ───┘
//
// A leaf has an equal share of neighbouring nodes, with a port for each of their NICs, and behind
// them the port to the spine. The spine's port l leads to leaf l. No node sees two of them, so all
// have the MAC and IP address of the job's switch.
//
// Ports "of the job" are numbered as network_switch.h says. Threading: immutable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/packets/network_switch.h"
#include "profiles/job/job.h"

namespace ghostrank {

// What one switch has to know of a job.
struct SwitchPart {
  struct Member : SwitchJob::Worker {
    int workers = 1;  // that it sums for; of a leaf: all workers of the job behind it
  };
  int at = 0;            // which switch
  int first_worker = 0;  // number of the members' first worker; the others follow
  std::uint16_t worker_port = 0;
  std::vector<Member> members;  // at ports of this switch
  int uplink = -1;              // the port to the spine; -1: the job ends here
};

class SwitchTree {
 public:
  SwitchTree(const SwitchSpec& spec, int nodes);

  // Switches 0, 1, ... are the leaves, the last one is the spine; or there is one alone.
  int switches() const { return has_spine() ? leaves_ + 1 : 1; }
  bool has_spine() const { return leaves_ > 1; }
  std::string name(int at) const;  // "leaf 0", "the spine", "the switch"
  int ports(int at) const;
  // The job's ports of a leaf: [begin, end).
  int begin(int leaf) const;
  int end(int leaf) const { return begin(leaf + 1); }
  // The port of a switch that leads to a port of the job.
  int towards(int at, int port) const;

  // A job whose workers are all on one leaf needs no spine. Requires reason_to_refuse() to be "".
  std::vector<SwitchPart> parts_of(const SwitchJob& job) const;
  std::string reason_to_refuse(const SwitchJob& job) const;

 private:
  int leaf_of(int port) const;

  int nodes_, nics_, leaves_;
  std::string mac_, ip_;
};

}  // namespace ghostrank
