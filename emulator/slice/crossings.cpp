#include "emulator/slice/crossings.h"

#include <algorithm>
#include <tuple>

#include "emulator/common/random.h"
#include "switch/assert.h"

namespace ghostrank {

std::size_t OutwardConnection::Hash::operator()(const OutwardConnection& c) const {
  const auto pair = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; };
  return RandomBits(
             {pair(static_cast<std::uint32_t>(c.rank.value()), static_cast<std::uint32_t>(c.peer)),
              pair(c.group, c.sequence),
              pair(c.actor, std::uint32_t{c.channel} << 8 | static_cast<std::uint32_t>(c.kind))})
      .next();
}

std::uint32_t CrossingRecorder::connection(const OutwardConnection& connection) {
  const auto [it, fresh] =
      connection_of_.try_emplace(connection, static_cast<std::uint32_t>(sent_.size()));
  if (fresh) sent_.push_back(0), credited_.push_back(0);
  return it->second;
}

Picoseconds CrossingRecorder::left(std::uint32_t connection, Picoseconds at) {
  left_.push_back({connection, sent_[connection]++, at});
  return static_cast<Picoseconds>(left_.size());
}

std::uint32_t CrossingRecorder::line(WorldRank from, WorldRank target) {
  const auto [it, fresh] =
      line_of_.try_emplace({from, target}, static_cast<std::uint32_t>(made_.lines.size()));
  if (fresh) made_.lines.push_back({target});
  return it->second;
}

void CrossingRecorder::comes(const Event& e, WorldRank from, WorldRank target) {
  Crossings::Arrival& arrival = made_.arrivals.emplace_back();
  arrival.event = e;
  arrival.event.flight = nullptr;
  arrival.event.held = kNil;
  arrival.line = line(from, target);
  if (e.message != MessageKind::credit) return;
  arrival.answers = connection({target, e.source, e.group, e.sequence, e.actor, e.channel});
  arrival.answered = credited_[arrival.answers]++;
}

void CrossingRecorder::ended(std::uint32_t iteration, const Moment& at) {
  const auto [it, fresh] = ends_.try_emplace(iteration, at);
  if (!fresh) it->second = later(it->second, at);
}

void CrossingRecorder::add_ends() {
  const auto line = static_cast<std::uint32_t>(made_.lines.size());
  made_.lines.push_back({slice_.first_played(), true});
  for (const auto& [iteration, at] : ends_) {
    Crossings::Arrival& arrival = made_.arrivals.emplace_back();
    arrival.event.t = at;
    arrival.event.sequence = iteration;
    arrival.line = line;
  }
}

// Adds the departures that arrivals belong to.
void CrossingRecorder::add_departures(std::vector<Dependence> all, Crossings& out) const {
  std::sort(all.begin(), all.end());
  std::vector<std::uint32_t> number_of(sent_.size(), kNil);
  const Dependence* before = nullptr;
  for (const Dependence& one : all) {
    const auto released = static_cast<std::uint32_t>(out.released.size());
    if (!before || one.connection != before->connection) {
      number_of[one.connection] = static_cast<std::uint32_t>(out.connections.size());
      const auto first = static_cast<std::uint32_t>(out.departures.size());
      out.connections.push_back({first, first});
    }
    const auto name = [](const Dependence& d) { return std::tuple(d.connection, d.number); };
    const auto place = [](const Dependence& d) { return std::tuple(d.host, d.shard); };
    const bool another = !before || name(one) != name(*before);
    if (another) {
      const auto first = static_cast<std::uint32_t>(out.releases.size());
      out.departures.push_back({one.number, first, first});
      ++out.connections.back().end;
    }
    if (another || place(one) != place(*before)) {
      out.releases.push_back({Host(one.host), one.shard, released, released});
      ++out.departures.back().end;
    }
    out.released.push_back({one.arrival, one.delay});
    ++out.releases.back().end;
    before = &one;
  }
  for (const auto& [connection, number] : connection_of_)
    if (number_of[number] != kNil) out.connection_of.emplace(connection, number_of[number]);
}

// Adds what the arrival belongs to.
void CrossingRecorder::add_parts(std::uint32_t number, Crossings& out,
                                 std::vector<Dependence>& to) const {
  Crossings::Arrival& arrival = out.arrivals[number];
  const Location& there = slice_.location(out.lines[arrival.line].target);
  const auto belongs = [&](std::uint32_t connection, std::uint32_t message, Picoseconds delay) {
    to.push_back({connection, message, there.host.value(), there.shard, number, delay});
    ++arrival.parts;
  };
  const auto after = static_cast<std::size_t>(std::exchange(arrival.event.t.slip, 0));
  if (after == 0) {
    out.independent.push_back(number);
    ++arrival.parts;
  } else {
    const Left& left = left_[after - 1];
    GHOSTRANK_ASSERT(arrival.event.t.at >= left.at);
    belongs(left.connection, left.number, arrival.event.t.at - left.at);
    if (left.connection == arrival.answers && left.number == arrival.answered) return;
  }
  if (arrival.answers != kNil) belongs(arrival.answers, arrival.answered, 0);
}

Crossings CrossingRecorder::take() {
  add_ends();
  Crossings out = std::exchange(made_, {});
  std::stable_sort(out.arrivals.begin(), out.arrivals.end(),
                   [](const Crossings::Arrival& a, const Crossings::Arrival& b) {
                     return std::tie(a.line, a.event.t.at) < std::tie(b.line, b.event.t.at);
                   });
  std::vector<Dependence> dependences;
  for (std::uint32_t i = 0; i < out.arrivals.size(); ++i) {
    Crossings::Line& line = out.lines[out.arrivals[i].line];
    if (line.end == 0) line.first = i;
    line.end = i + 1;
    add_parts(i, out, dependences);
  }
  add_departures(std::move(dependences), out);
  connection_of_.clear();
  sent_.clear();
  credited_.clear();
  left_.clear();
  line_of_.clear();
  ends_.clear();
  return out;
}

}  // namespace ghostrank
