#include "emulator/network/link_rates.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace ghostrank {
namespace {

Picoseconds end_of(const JobEvent& event) {
  return event.lasts == JobEvent::kEver ? JobEvent::kEver : event.at + event.lasts;
}

// The curve of a link of `ps_per_byte` of its own.
RateCurve curve_of(const std::vector<const JobEvent*>& events, double ps_per_byte) {
  std::set<Picoseconds> times{0};
  for (const JobEvent* event : events) times.insert({event->at, end_of(*event)});
  times.erase(JobEvent::kEver);
  std::vector<RateCurve::Change> changes;
  for (const Picoseconds at : times) {
    double slowest = ps_per_byte;
    for (const JobEvent* event : events)
      if (event->at <= at && at < end_of(*event)) slowest = std::max(slowest, 8e12 / event->bps);
    if (changes.empty() || changes.back().ps_per_byte != slowest) changes.push_back({at, slowest});
  }
  return RateCurve(std::move(changes));
}

}  // namespace

LinkRates::LinkRates(const JobEvents& events, const Topology& topology) {
  std::map<std::uint32_t, std::vector<const JobEvent*>> of_link;
  for (const JobEvent& event : events.all)
    if (event.kind == JobEvent::Kind::link)
      for (const std::uint32_t link : {event.cable, event.cable + topology.links() / 2})
        of_link[link].push_back(&event);
  for (const auto& [link, own] : of_link)
    curves_.emplace(link, curve_of(own, topology.link(link).ps_per_byte));
}

Picoseconds LinkRates::next_change(Picoseconds after) const {
  Picoseconds next = NicRates::kNever;
  for (const auto& [link, curve] : curves_) next = std::min(next, curve.piece(after).until);
  return next;
}

LinkTurn turn_on(const RateCurve& curve, Picoseconds begin, const Passage& in, const Moment& free,
                 double bytes) {
  Moment start = later({in.head, in.slip}, free);
  start.at = curve.passes_from(begin + start.at) - begin;
  LinkTurn turn{start, curve.duration(begin + start.at, bytes), 0};
  // What has come when a rate changes may have to wait: the rest of it passes from then on.
  const auto last_of = [&](Picoseconds at) {
    const double share = in.tail > in.head ? static_cast<double>(at - in.head) /
                                                 static_cast<double>(in.tail - in.head)
                                           : 1;
    return at + curve.duration(begin + at, bytes * (1 - share));
  };
  for (Picoseconds at = start.at; at < in.tail; at = curve.piece(begin + at).until - begin) {
    if (at > start.at) turn.tail = std::max(turn.tail, last_of(at));
    if (curve.piece(begin + at).until == RateCurve::kEver) break;
  }
  turn.tail = std::max(turn.tail, last_of(std::max(in.tail, start.at)));
  return turn;
}

}  // namespace ghostrank
