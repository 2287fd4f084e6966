// Hands parcels to other shards and to the fabric, and keeps those that a full ring or fabric did
// not take in an outbox. See shard.h.
#include <algorithm>

#include "emulator/shard/inline.h"

namespace ghostrank {
namespace {

constexpr int kSendsPerClockRead = 8;
constexpr int kSendsInARow = 8;
constexpr std::uint64_t kTimedBytes = 4096;  // a send of this size or more always reads the clock
// Bound of an actor's unposted messages: a slice to each peer of a step, permissions to all.
constexpr std::uint32_t kMaxHeldPerActor = 4096;

}  // namespace

// Hands the parcel to another shard or to a flow: at once or, when there is no room, from the
// outbox.
void Shard::hand_over(int outbox, Parcel&& parcel) {
  if (outboxes_.empty(outbox) && try_hand_over(outbox, parcel)) return;
  keep(outbox, std::move(parcel));
}

// Keeps the parcel in the outbox. Its actor, if it has one, waits until the parcel has left, so an
// actor has few messages in outboxes.
void Shard::keep(int outbox, Parcel&& parcel) {
  if (parcel.event.flight) {
    const std::uint32_t held = ++parcel.event.flight->actors[parcel.event.actor].unposted;
    GHOSTRANK_ASSERT(held <= kMaxHeldPerActor);
  }
  outboxes_.keep(outbox, std::move(parcel));
}

bool Shard::try_hand_to_shard(int shard, Parcel& parcel) {
  if (virtual_) {
    // The receiver may answer it, one lookahead later.
    window_end_ = std::min(window_end_, after(parcel.event.t.at, lookahead_));
    ++stats_.handed;
    shared_->windows.send(index_, shard, std::move(parcel));
    return true;
  }
  const auto ring = static_cast<std::size_t>(index_ * shared_->shards + shard);
  if (!shared_->rings[ring]->try_push(parcel)) return false;
  if (shared_->asleep[shard]->exchange(false)) {
    shared_->fabrics[shard]->wake();
  }
  return true;
}

bool Shard::try_hand_over(int outbox, Parcel& parcel) {
  if (outbox < cluster_.shards()) return try_hand_to_shard(outbox, parcel);
  return try_send(outbox - cluster_.shards(), parcel.nic, parcel.message);
}

// Sends through the fabric or as a packet. Returns false when there is no room; the caller keeps
// the message.
bool Shard::try_send(int flow, Nic nic, Message& message) {
  Header& h = message.header;
  // Handing over a large message takes as long as many reads of the clock and makes the next
  // message late, so read the clock for it.
  if (h.bytes >= kTimedBytes || ++handed_ % kSendsPerClockRead == 0) now_ = clock_.now();
  const Picoseconds start = h.start, late = std::max<Picoseconds>(0, now_ - start);
  h.late_ns = static_cast<std::uint32_t>(std::min<Picoseconds>(late / kPicosPerNano, 0xffffffff));
  const std::uint64_t bytes = h.bytes;
  const bool data = h.kind == MessageKind::data || h.kind == MessageKind::note;
  const auto flows = static_cast<int>(flows_.of(host_, index_).size());
  const int packet_flows = packets_ ? flows : 0;
  const bool to_switch = flow >= flows + packet_flows;
  if (to_switch)
    switch_slips_.sent(h.group, nic.value() % cluster_.nics_per_node(), h.actor,
                       static_cast<Picoseconds>(h.slip_ns) * kPicosPerNano + late);
  const WorldParty rank =
      to_switch ? cluster_.world_party(cluster_.schemes()[h.group], h.source) : WorldParty{};
  const std::uint32_t group = h.group, slot = h.actor;
  const bool sent = flow < flows ? fabric_.try_send(flow, message)
                    : to_switch
                        ? try_send_packet(*switch_packets_, flow - flows - packet_flows, message)
                        : try_send_packet(*packets_, flow - flows, message);
  if (!sent) return false;
  if (to_switch) stats_.packets.sent_again += unanswered_.sent(group, rank, slot);
  if (data && bytes > 0) pacing_.note(nic, start, time_at_nic(nic, start, bytes), late);
  return true;
}

// Retries each outbox. After a parcel leaves, its sender may post up to 8 more while its state is
// cached; they may overtake parcels of other connections, but only without NIC pacing: a sender of
// data then waits for each parcel, so the outbox holds no other data of its own. Returns whether
// anything left.
bool Shard::flush() {
  const bool any =
      outboxes_.flush([this](int outbox, Parcel& parcel) { return try_hand_over(outbox, parcel); },
                      [this](Flight* flight, std::uint32_t actor) {
                        if (!flight) return;
                        may_pass_ = nic_.limited() ? 0 : kSendsInARow;
                        posted(*flight, flight->actors[actor]);
                        go_on();
                        may_pass_ = 0;
                      });
  if (packets_) packets_->flush();
  if (switch_packets_) switch_packets_->flush();
  return any;
}

}  // namespace ghostrank
