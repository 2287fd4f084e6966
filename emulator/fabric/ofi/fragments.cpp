#include "emulator/fabric/ofi/fragments.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ghostrank {
namespace {

bool same_message(const Header& a, Header b) {
  b.offset = a.offset;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

std::uint64_t pack(const Envelope& e) {
  return std::uint64_t{e.flow} << 44 | std::uint64_t{e.number % kNumbers} << 20 | e.index;
}

Envelope unpack(std::uint64_t offset) {
  return {static_cast<std::uint32_t>(offset >> 44),
          static_cast<std::uint32_t>(offset >> 20) % kNumbers,
          static_cast<std::uint32_t>(offset) % (1u << 20)};
}

std::uint64_t fragments_of(std::uint64_t message_bytes) {
  return message_bytes == 0 ? 1 : (message_bytes + kFragmentBytes - 1) / kFragmentBytes;
}

std::uint64_t fragment_bytes(std::uint64_t message_bytes, std::uint64_t index) {
  return std::min(kFragmentBytes, message_bytes - index * kFragmentBytes);
}

bool Reassembly::plausible(const Header& wire, std::size_t received, const Envelope& e) const {
  if (wire.kind == kFrameKind && wire.bytes > frame_bytes_) return false;
  return wire.nonce == nonce_ && wire.bytes <= kMaxMessageBytes && e.flow < flows_.size() &&
         e.index < fragments_of(wire.bytes) &&
         received == sizeof(Header) + fragment_bytes(wire.bytes, e.index);
}

Reassembly::Verdict Reassembly::accept(const Header& wire, std::size_t received,
                                       const std::byte* payload, std::vector<Message>& ready) {
  if (received < sizeof(Header)) return Verdict::stray;
  const Envelope e = unpack(wire.offset);
  if (!plausible(wire, received, e)) return Verdict::stray;
  Incoming& flow = flows_[e.flow];
  const std::uint32_t distance = (e.number - flow.expected) % kNumbers;
  if (distance >= kAhead) return Verdict::stray;

  Header header = wire;
  header.offset = 0;
  if (distance > 0) {
    Fragment fragment{header, e.index, nullptr};
    const std::size_t bytes = received - sizeof(Header);
    if ((keep_payload_ || header.kind == kFrameKind) && bytes > 0) {
      fragment.payload.reset(new (std::nothrow) std::byte[bytes]);
      if (!fragment.payload) return Verdict::no_memory;
      std::memcpy(fragment.payload.get(), payload, bytes);
    }
    const bool fresh = flow.early.emplace(e.number, std::move(fragment)).second;
    return fresh ? Verdict::taken : Verdict::stray;
  }

  const Verdict verdict = take(flow, header, e.index, payload, ready);
  while (verdict == Verdict::taken && !flow.early.empty()) {
    const auto next = flow.early.find(flow.expected);
    if (next == flow.early.end()) break;
    const Fragment fragment = std::move(next->second);
    flow.early.erase(next);
    // A stray among the early fragments shows only now, and is dropped.
    if (take(flow, fragment.header, fragment.index, fragment.payload.get(), ready) ==
        Verdict::no_memory)
      return Verdict::no_memory;
  }
  return verdict;
}

// Takes the fragment whose turn it is.
Reassembly::Verdict Reassembly::take(Incoming& flow, const Header& header, std::uint32_t index,
                                     const std::byte* payload, std::vector<Message>& ready) {
  if (index != flow.arrived) return Verdict::stray;
  if (header.kind == kFrameKind) return take_frame(flow, header, index, payload, ready);
  if (index > 0 && !same_message(flow.partial.header, header)) return Verdict::stray;
  if (index == 0) {
    flow.partial.header = header;
    if (keep_payload_ && header.bytes > 0) {
      flow.partial.payload.reset(new (std::nothrow) std::byte[header.bytes]);
      if (!flow.partial.payload) return Verdict::no_memory;
    }
  }
  if (keep_payload_ && header.bytes > 0)
    std::memcpy(flow.partial.payload.get() + index * kFragmentBytes, payload,
                fragment_bytes(header.bytes, index));
  flow.expected = (flow.expected + 1) % kNumbers;
  if (++flow.arrived == fragments_of(header.bytes)) {
    ready.push_back(std::move(flow.partial));
    flow.partial = {};
    flow.arrived = 0;
  }
  return Verdict::taken;
}

Reassembly::Verdict Reassembly::take_frame(Incoming& flow, const Header& header,
                                           std::uint32_t index, const std::byte* payload,
                                           std::vector<Message>& ready) {
  if (index != 0 || !parse_frame({payload, header.bytes}, framed_)) return Verdict::stray;
  const std::size_t before = ready.size();
  for (const FramedMessage& framed : framed_) {
    Message& message = ready.emplace_back(framed.header(), nullptr);
    message.header.nonce = nonce_;
    message.header.offset = 0;
    if (!keep_payload_ || framed.bytes == 0) continue;
    message.payload.reset(new (std::nothrow) std::byte[framed.bytes]);
    if (!message.payload) {
      ready.resize(before);
      return Verdict::no_memory;
    }
    std::memcpy(message.payload.get(), framed.payload().data(), framed.bytes);
  }
  flow.expected = (flow.expected + 1) % kNumbers;
  return Verdict::taken;
}

}  // namespace ghostrank
