// When a shard stands still: since when, as stalls.h defines it, and which ranks wait for which.
// See shard.h.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "emulator/shard/ranks/carried.h"
#include "emulator/shard/shard.h"

namespace ghostrank {
namespace {

constexpr int kMostNamed = 3;  // waits named per shard; the others are counted

// Returns the event that a stream waits for, by its number in the program.
std::string event_text(const RankState& r, const StreamState& s) {
  const Op& op = program_of(r, s).streams[&s - r.streams.data()][s.pc];
  return std::to_string(op.event) + (op.previous ? " of the iteration before" : "");
}

// The number of the call among those of its group or, of a transfer, of its pair.
std::uint32_t number_of(const Flight& f) {
  return f.peer == kNoRank ? f.sequence : f.sequence >> 1;
}

}  // namespace

// Whether ranks, calls or messages have made progress since the last call. Agents alone may act for
// ever without progress, so timers that fire and packets that are sent again do not count; what
// AgentRunner::progress() counts does.
bool Shard::got_on() {
  if (!agents_.serves()) return true;
  const std::uint64_t now = stats_.events - of_agents_ + agents_.progress() + moved_;
  return std::exchange(got_so_far_, now) != now;
}

// Whether anything is pending but timers and packets, which agents may repeat for ever.
bool Shard::awaits_more_than_agents() const {
  const auto more = [this](const Event& e) {
    const bool packet = e.message == MessageKind::note && e.bytes() <= spec_.fabric.packets.mtu;
    return e.kind != Event::Kind::timer && !packet;
  };
  return timers_.any(more) || (virtual_ && shared_->windows.any_sent(index_, more));
}

// In virtual time nobody watches from outside: before every window each shard says when it got on
// last. While some shard waits for more than agents, nothing stands still.
void Shard::tell_whether_it_got_on() {
  if (got_on() || (suspects_agents_ && awaits_more_than_agents()))
    got_on_at_ = std::max(window_, now_);
}

// Whether the run ends before the window that begins at `first`, because only agents have acted for
// too long. All shards draw the same conclusion. When they first suspect it, each checks whether it
// waits for more than agents.
bool Shard::agents_repeat_themselves(Picoseconds first) {
  window_ = first;
  Picoseconds last = 0;
  for (int shard = 0; shard < shared_->shards; ++shard)
    last = std::max(last, shared_->windows.told(index_, shard).got_on);
  const bool too_long = seconds(first - last) > spec_.run.stall_timeout_s;
  if (!std::exchange(suspects_agents_, too_long) || !too_long) return false;
  char text[96];
  std::snprintf(text, sizeof text, "stalled for %.1f s of emulated time (run.stall_timeout_s): ",
                seconds(first - last));
  if (ranks_left_ > 0)
    fail(text + what_is_stuck());
  else if (shared_->ended == shared_->shards)
    fail(std::string(text) + "agents do not come to rest after the last iteration");
  return true;
}

// Call after every pass that moved something. Does not read the clock.
void Shard::note_progress() {
  if (quiet_.note_progress(now_)) tell_quiet(false, 0, "");
}

// Call before every sleep, and after every pass in which only agents repeated themselves.
void Shard::note_rest() {
  const Picoseconds now = clock_.now();
  Picoseconds next = timers_.empty() ? 0 : timers_.next();
  if (agents_.serves() && quiet_.lasts(now) && !awaits_more_than_agents()) next = 0;
  const auto since = quiet_.note_rest(next, now);
  if (since) tell_quiet(true, *since, what_is_stuck());
}

// Call when this shard has ended: from here on no other shard waits for it.
void Shard::note_end() {
  note_progress();
  quiet_.note_end(now_);
  if (!stopped()) tell_quiet(true, now_, "");
}

void Shard::tell_quiet(bool quiet, Picoseconds since, std::string stuck) {
  const std::lock_guard lock(shared_->mutex);
  shared_->quiet[index_] = {quiet, since, std::move(stuck)};
}

std::string Shard::what_is_stuck() const {
  std::string text;
  int named = 0;
  const auto add = [&](const std::string& one) {
    if (named < kMostNamed) text += (named > 0 ? "; " : "") + one;
    ++named;
  };
  for (const RankState& r : ranks_) {
    if (r.local >= players_) break;  // helpers have no calls
    const std::string rank = "rank " + to_string(r.party) + " on host " + to_string(host_);
    const auto label = [&](const Flight& f) {
      const std::string what = label_of(program_of(r, r.streams[f.stream]), f.stream, f.at);
      return what.empty() ? "" : " '" + what + "'";
    };
    for (const Flight* f : r.flights) {
      const Schedules::Row& row = rows()[f->row];
      const std::string call = rank + " in " + row.op + " #" + std::to_string(number_of(*f)) +
                               label(*f) + " of group " + row.group;
      if (f->whole != Flight::Whole::no) {
        const bool node = f->whole == Flight::Whole::in_node;
        add(call + (node ? " inside its node" : "") + " waits for the other members");
        continue;
      }
      if (f->by_agents) {
        add(call + " (" + row.algorithm + ") waits for its agents");
        continue;
      }
      for (const ActorState& a : f->actors) {
        const bool sends = a.credits && !a.credits->waiting.empty();
        if ((a.k >= a.steps && !sends) || a.waits) continue;  // not the cause
        add(call + " (" + row.algorithm + ", channel " + std::to_string(a.channel) + ", step " +
            std::to_string(a.k) + " of " + std::to_string(a.steps) + ") waits for " +
            what_is_awaited(*f, a));
      }
    }
    if (!r.flights.empty() || r.iteration >= r.stop_at) continue;
    for (const StreamState& s : r.streams) {
      if (s.phase == StreamState::Phase::waiting)
        add(rank + " waits for event " + event_text(r, s));
    }
  }
  if (named > kMostNamed) text += "; and " + std::to_string(named - kMostNamed) + " more";
  if (named == 0 && (outboxes_.kept() > 0 || !fabric_.idle()))
    return "what host " + to_string(host_) + " has sent does not leave it";
  return text;
}

std::string Shard::what_is_awaited(const Flight& f, const ActorState& a) const {
  const auto& members = workload_.groups[f.group & ~kPointToPoint].members;
  const auto named = [&](GroupRank position) {
    const WorldRank rank = members[position];
    const Host host = cluster_.location(rank).host;
    return "rank " + to_string(rank) +
           (host == kNoHost ? " outside the slice" : " on host " + to_string(host));
  };
  std::string text;
  for (int i = 0; i < a.step->recv_from.size(); ++i) {
    if (a.awaiting >> i & 1) text += (text.empty() ? "" : " and ") + named(a.step->recv_from[i]);
  }
  if (!text.empty()) return text;
  if (a.credits && !a.credits->waiting.empty())
    return named(a.credits->waiting.front().peer) + " to post a receive";
  for (int i = 0; i < a.step->send_to.size(); ++i)
    text += (text.empty() ? "room to send to " : " and ") + named(a.step->send_to[i]);
  return text.empty() ? "its turn" : text;
}

}  // namespace ghostrank
