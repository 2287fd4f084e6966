// The table entries of a user's own program, written for any number of nodes. A line that speaks of
// a node is repeated for each of them:
//
//   {node}   its number, which is its port of the switch       {nodes}   how many nodes there are
//   {mac}    the Ethernet address of its interface, a number
//   {ip}     its IPv4 address, a number
//
// Threading: pure.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

struct NodeInterface {
  std::string mac, ip;  // "02:00:00:00:00:01", "10.0.0.1"
};

// The lines of a file for these nodes. Throws Error(usage): FILE:LINE and what is wrong there.
std::vector<std::string> entries_for(const std::string& file,
                                     const std::vector<NodeInterface>& nodes);

}  // namespace ghostrank
