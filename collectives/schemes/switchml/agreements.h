// How a worker takes part in the agreements of its rail (agreement.h): the notes that it
// sends and takes. The speaker also decides, and adds up the packets that some workers lack.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "collectives/schemes/shared/kept_note.h"
#include "collectives/schemes/shared/rails.h"
#include "collectives/schemes/shared/slot_timers.h"
#include "collectives/schemes/switchml/agreement.h"
#include "collectives/schemes/switchml/packets.h"

namespace ghostrank::switchml {

// A worker's content of a packet, or the sum of all workers' content.
struct Contribution {
  Words words;  // with the packet's own number
  bool full = false;
  std::vector<std::int32_t> values = {};  // of a full one, if ranks hold real data

  void add(const Contribution& other);
};

// The worker, as agreements see it.
class Streamer {
 public:
  virtual ~Streamer() = default;
  virtual SlotList state() const = 0;
  // It leaves the switch alone, and its state as it is, until go().
  virtual void pause() = 0;
  virtual void go(Io& io, const SlotList& agreed) = 0;
  // The worker's content of the packet of that number, which some workers have completed.
  virtual Contribution part(std::uint16_t slot, std::uint32_t number) const = 0;
  // The sum of a packet that it lacks.
  virtual void take_sum(Io& io, std::uint16_t slot, const Contribution& sum) = 0;
};

class Agreements {
 public:
  // `elements`: of a packet. `fallback`: as for Agreement::decide().
  Agreements(const Rails& rails, int rail, int node, int slots, int elements,
             std::uint32_t fallback, Streamer& streamer, Outbox& outbox);

  bool speaks() const { return node_ == 0; }
  // Ticks after which a packet has waited for long.
  int patience() const { return patience_; }
  void begin_call() { patience_ = kPatience; }
  void heard() { heard_ = true; }  // something from the switch
  void suspect(Io& io);            // a packet has waited for long
  // Takes a note of another worker, but none of the ring.
  void take(Io& io, GroupParty from, const Note& note);

 private:
  static constexpr int kPatience = 8 * SlotTimers::kTicks;  // eight time-outs
  static constexpr int kMostPatience = 1 << 28;

  struct Parts {
    int missing = 0;
    Contribution sum;
    std::vector<int> lacking;  // workers
  };

  void tell(Io& io, int node, std::uint8_t tag, std::uint32_t index = 0,
            std::span<const std::byte> words = {}, const Contribution* packet = nullptr);
  void list(Io& io, int node, std::uint8_t tag, const SlotList& slots);
  void begin(Io& io);
  void take_state(Io& io, int node, std::span<const std::byte> words);
  void conclude(Io& io);
  void go(Io& io, const SlotList& agreed);
  void take_part(Io& io, std::uint16_t slot, const Contribution& part);

  const Rails& rails_;
  const int rail_, node_, elements_;
  const std::size_t slots_;
  const std::uint32_t fallback_;
  Streamer& streamer_;
  Outbox& outbox_;
  // In ticks. An agreement doubles it if the speaker has heard nothing since the agreement before,
  // else halves it, so that workers wait for slow answers.
  int patience_ = kPatience;
  bool heard_ = false;       // since the last agreement
  bool suspected_ = false;   // likewise
  bool over_ = false;        // the switch has been given up
  std::uint32_t known_ = 0;  // agreements that this worker knows of
  SlotList agreed_;          // the agreed list, as far as received
  // Of the speaker.
  std::optional<Agreement> agreement_;    // in progress
  std::map<std::uint16_t, Parts> parts_;  // by slot
};

}  // namespace ghostrank::switchml
