#include "collectives/schemes/switchml/ring.h"

#include <algorithm>
#include <cstring>

#include "collectives/schemes/switchml/agreement.h"

namespace ghostrank::switchml {

Ring::Ring(Location location, const RailShare& share, const Call& call, bool exponents, bool real,
           RingChunks& chunks, Outbox& outbox)
    : location_(location),
      share_(share),
      me_(location.node),
      workers_(location.rails.nodes()),
      call_(call.number),
      element_bytes_(reduces(call.collective.func) ? 4 : bytes_of(call.type)),
      exponents_(exponents),
      real_(real),
      chunks_(chunks),
      outbox_(outbox) {
  for (std::uint64_t c = 0; c < share.chunks(); ++c) left_ += !chunks.has_result(c);
}

int Ring::owner_of(std::uint64_t chunk) const {
  if (share_.reach() != Reach::everyone) return location_.rails.node_of(share_.chunk(chunk).rank);
  return static_cast<int>(share_.piece_of(chunk) % workers_);
}

// Words of a chunk: those of a packet without its padding.
std::uint64_t Ring::words_of(std::uint64_t chunk) const {
  return (share_.chunk(chunk).elements * element_bytes_ + 3) / 4;
}

Ring::Slice Ring::slice(std::uint64_t piece, int owner) const {
  Slice slice{piece, owner, {}};
  for (std::uint64_t c = share_.first_of(piece); c < share_.first_of(piece + 1); ++c)
    if (owner_of(c) == owner && !chunks_.has_result(c)) slice.chunks.push_back(c);
  return slice;
}

void Ring::ready(Io& io, std::uint64_t pieces) {
  for (; ready_ < pieces; ++ready_)
    for (int owner = 0; owner < workers_; ++owner) {
      const Slice one = slice(ready_, owner);
      if (one.chunks.empty()) continue;
      const bool up = share_.reach() != Reach::from_one;
      if (up ? behind(one) : me_ == owner)
        begin(io, !up ? Trip::values_down : exponents_ ? Trip::exponents_up : Trip::values_up, one);
    }
}

bool Ring::take(Io& io, const Note& note) {
  const std::uint32_t all = workers_;
  if (note.index / all >= ready_) return false;
  const Slice one = slice(note.index / all, note.index % all);
  const auto trip = static_cast<Trip>(note.tag - kRing);
  if (trip == Trip::exponents_up || trip == Trip::values_up)
    go_up(io, trip, one, note.content);
  else
    go_down(io, trip, one, note.content);
  return true;
}

MaybeChunk Ring::next() {
  if (done_.empty()) return std::nullopt;
  const std::uint64_t chunk = done_.front();
  done_.pop_front();
  return chunk;
}

// ---- Trips ----

void Ring::begin(Io& io, Trip trip, const Slice& slice) {
  const std::vector<std::byte> content = mine(io, trip, slice);
  if (trip == Trip::values_down) finish(io, slice, content);
  pass(io, trip, slice, content);
  if (trip == Trip::values_up && share_.reach() == Reach::to_one) done(slice);
}

void Ring::pass(Io& io, Trip trip, const Slice& slice, std::span<const std::byte> content) {
  const bool values = trip == Trip::values_up || trip == Trip::values_down;
  std::uint64_t elements = slice.chunks.size();
  if (values) {
    elements = 0;
    for (const std::uint64_t c : slice.chunks) elements += words_of(c);
  }
  outbox_.send(io, location_.rails.worker(location_.rail, (me_ + 1) % workers_),
               {.tag = static_cast<std::uint8_t>(kRing + static_cast<std::uint8_t>(trip)),
                .call = call_,
                .index = static_cast<std::uint32_t>(slice.piece) * workers_ + slice.owner,
                .type = values ? DataType::int32 : DataType::uint8,
                .elements = elements,
                .content = content});
}

void Ring::go_up(Io& io, Trip trip, const Slice& slice, std::span<const std::byte> content) {
  std::vector<std::byte> all = mine(io, trip, slice);
  if (!content.empty() && trip == Trip::values_up)
    add_elements(DataType::int32, all.data(), content.data(), all.size() / 4);
  for (std::size_t i = 0; i < content.size() && trip == Trip::exponents_up; ++i)
    all[i] = std::byte(
        std::max(std::to_integer<std::int8_t>(all[i]), std::to_integer<std::int8_t>(content[i])));
  if (me_ != slice.owner) {
    pass(io, trip, slice, all);
    if (trip == Trip::values_up && share_.reach() == Reach::to_one) done(slice);
    return;
  }
  if (trip == Trip::exponents_up) {
    agree(slice, all);
    return pass(io, Trip::exponents_down, slice, all);
  }
  finish(io, slice, all);
  if (share_.reach() == Reach::everyone) pass(io, Trip::values_down, slice, all);
}

void Ring::go_down(Io& io, Trip trip, const Slice& slice, std::span<const std::byte> content) {
  if ((me_ + 1) % workers_ != slice.owner) pass(io, trip, slice, content);
  if (trip == Trip::values_down) return finish(io, slice, content);
  agree(slice, content);
  if (behind(slice)) begin(io, Trip::values_up, slice);
}

// ---- Content ----

std::vector<std::byte> Ring::mine(Io& io, Trip trip, const Slice& slice) const {
  std::vector<std::byte> content;
  if (!real_) return content;
  for (const std::uint64_t c : slice.chunks) {
    if (trip == Trip::exponents_up) {
      content.push_back(static_cast<std::byte>(chunks_.exponent(io, c)));
      continue;
    }
    const std::vector<std::int32_t> values = chunks_.values(io, c);
    const auto bytes = std::as_bytes(std::span(values).first(words_of(c)));
    content.insert(content.end(), bytes.begin(), bytes.end());
  }
  return content;
}

void Ring::agree(const Slice& slice, std::span<const std::byte> exponents) {
  for (std::size_t i = 0; i < exponents.size(); ++i)
    chunks_.agree(slice.chunks[i], std::to_integer<std::int8_t>(exponents[i]));
}

void Ring::finish(Io& io, const Slice& slice, std::span<const std::byte> values) {
  for (std::size_t at = 0; const std::uint64_t c : slice.chunks) {
    if (values.empty()) break;
    std::vector<std::int32_t> words(words_of(c));
    std::memcpy(words.data(), values.data() + at, words.size() * 4);
    at += words.size() * 4;
    chunks_.finish(io, c, words);
  }
  done(slice);
}

void Ring::done(const Slice& slice) {
  done_.insert(done_.end(), slice.chunks.begin(), slice.chunks.end());
  left_ -= slice.chunks.size();
}

}  // namespace ghostrank::switchml
