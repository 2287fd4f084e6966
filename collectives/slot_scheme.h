// Base class for a scheme of your own in which a switch combines packets, slot by slot. A plug-in
// (plugin.h) adds the operation on two elements and, for a real network, a program for the switch
// that computes the same.
//
//   worker 0   chunk 0 > slot 0, set 0             chunk S > slot 0, set 1     S: slots
//   switch              + + ... all > to 0 and 1            + + ... all > 0 1
//   worker 1   chunk 0 > slot 0, set 0             chunk S > slot 0, set 1
//
// Every rank is a worker and has at most one packet in each slot, so at most S packets in flight.
// After the result of a chunk has come, its worker may reuse the slot, with the slot's other set;
// the first set keeps the result for workers that missed it. A worker resends a packet that has no
// answer after switch.timeout_us, or later where most packets have none by then. So loss,
// duplicates and delay do no harm, as long as packets between two parties stay in order. The scheme
// serves all-reduce alone: every rank sends and receives the whole buffer. Zeros fill up a last
// packet that is not full.
//
//   | port 2 | slot * 2 + set 2 | call 4 | elements, 4 bytes each |        a packet, big-endian
//
// On memory and virtual the switch is an agent that calls combine(); on a real network it is your
// program (switch.program), for which slots_parser.spec and slots_results.spec are installed beside
// this: parser, slots, workers and results. Such a program serves communicators of all nodes, each
// in slots of its own.
//
//   class Largest final : public SlotScheme {
//    public:
//     using SlotScheme::SlotScheme;
//     std::uint32_t combine(std::uint32_t a, std::uint32_t b) const override;
//   };
//   // a row's .ends: [](int n, auto& comm) { return std::make_unique<Largest>(n, comm, kForm); }
//
// examples/slot_max.cpp is a whole plug-in.
//
// Units: elements, bytes, UDP ports. Errors: std::invalid_argument from the constructor for a form
// out of range, which the loader of plug-ins reports; a call of another type is refused before the
// run. Threading: immutable, its functions may be called from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "collectives/agent.h"
#include "collectives/wire_format.h"

namespace ghostrank {

struct SlotForm {
  std::string_view name;            // of the packets, for reports
  std::uint16_t port = 0;           // of the switch, and a packet's first two bytes; 1 to 65535
  std::uint32_t slots = 8;          // 1 to 16384
  std::uint32_t elements = 32;      // of a packet, 1 to 256
  DataType type = DataType::int32;  // of elements; 4 bytes
};

class SlotScheme : public Ends {
 public:
  SlotScheme(int size, const Communicator& comm, const SlotForm& form);

  // ---- Yours

  // An element as it travels, and back. By default its bits as they are.
  virtual std::uint32_t to_wire(std::uint32_t bits) const { return bits; }
  virtual std::uint32_t from_wire(std::uint32_t element) const { return element; }
  // What a switch makes of two elements as they travel, in whatever order they come. By default
  // their sum, modulo 2^32.
  virtual std::uint32_t combine(std::uint32_t a, std::uint32_t b) const { return a + b; }
  // False: results are no sums. Runs then compare them bit by bit with combine() over all ranks'
  // elements, as float32: calls are refused where the form has another type.
  virtual bool sums() const { return true; }

  // ---- Built on these functions

  const SlotForm& form() const { return form_; }
  // Slots as packets number them: those of this communicator are first_slot() and the ones behind.
  std::uint32_t first_slot() const { return first_slot_; }
  bool has(std::uint32_t index) const {
    return index >= 2 * first_slot_ && index < 2 * (first_slot_ + form_.slots);
  }
  std::vector<Helper> helpers() const override { return {{PartyKind::network_switch}}; }
  std::unique_ptr<Agent> agent(GroupParty party) const override;
  std::vector<Edge> traffic(const Call& call) const override;
  std::uint64_t overhead_bytes() const override;
  const WireFormat* wire_format() const override { return packets_.get(); }
  std::optional<SwitchService> switch_service() const override;
  Survives survives() const override { return {true, true, true, false}; }
  std::unique_ptr<Expected> expected(const Call& call) const override;
  std::string refuses(const Call& call) const override;

 private:
  SlotForm form_;
  std::uint32_t first_slot_;  // Communicator::in_switch.first_slot
  Picoseconds timeout_;       // switch.timeout_us
  std::unique_ptr<const WireFormat> packets_;
};

}  // namespace ghostrank
