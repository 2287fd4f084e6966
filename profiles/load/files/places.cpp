#include "profiles/load/files/places.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>

#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

constexpr int kMost = 1 << 21;  // a number in a line

}  // namespace

std::vector<int> parse_places(std::string_view text, const std::string& path, int nodes,
                              int places) {
  constexpr int kNone = -1;
  const auto source = std::make_shared<Source>(Source{path, path, true});
  std::vector<int> place_of(static_cast<std::size_t>(nodes), kNone);
  std::vector<bool> taken(static_cast<std::size_t>(places));
  std::istringstream in{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    const Mark mark{source, ++number, 1};
    const std::vector<std::string> fields = words(line.substr(0, line.find('#')));
    if (fields.empty()) continue;
    const auto own = parse_number_list(fields[0], kMost),
               given = fields.size() == 2 ? parse_number_list(fields[1], kMost) : std::nullopt;
    if (!own || !given)
      fail(mark, quote(line) + " is not NODES PLACES; write for example 0-3 8-11");
    if (own->size() != given->size())
      fail(mark, std::to_string(own->size()) + " nodes and " + std::to_string(given->size()) +
                     " places; name as many of each");
    for (std::size_t i = 0; i < own->size(); ++i) {
      const int node = (*own)[i], place = (*given)[i];
      if (node >= nodes)
        fail(mark, "there is no node " + std::to_string(node) + ": the job has " +
                       std::to_string(nodes) + ", and numbers begin at 0");
      if (place >= places)
        fail(mark, "there is no place " + std::to_string(place) + ": the fabric has " +
                       std::to_string(places) + " (cluster.topology.places), from 0 on");
      if (place_of[static_cast<std::size_t>(node)] != kNone)
        fail(mark, "node " + std::to_string(node) + " has a place already; name it once");
      if (taken[static_cast<std::size_t>(place)])
        fail(mark, "place " + std::to_string(place) + " is taken already; one node fits");
      place_of[static_cast<std::size_t>(node)] = place;
      taken[static_cast<std::size_t>(place)] = true;
    }
  }
  const auto missing = std::find(place_of.begin(), place_of.end(), kNone);
  if (missing != place_of.end())
    fail({source, std::max(1, number), 1}, "node " + std::to_string(missing - place_of.begin()) +
                                               " has no place; every node from " + "0 to " +
                                               std::to_string(nodes - 1) + " needs one");
  return place_of;
}

std::vector<int> read_places(const Setting& placement, const std::string& near, int nodes,
                             int places) {
  if (const std::optional<NamedText> lines = named_text(placement.text, placement.key->path, near))
    return parse_places(lines->text, lines->name, nodes, places);
  fail(placement.mark, std::string(placement.key->path) + " is " + quote(placement.text) +
                           "; write packed, spread, random, or the path of a file with lines of "
                           "NODES PLACES (there is no such file)");
}

}  // namespace ghostrank
