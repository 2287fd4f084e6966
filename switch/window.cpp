#include "switch/window.h"

#include <algorithm>

#include "switch/assert.h"
#include "switch/wire/switchml.h"

namespace ghostrank::switchml {

Window::Window(int window) : window_(window), slots_(window) {
  GHOSTRANK_ASSERT(window >= 1 && window <= kMaxSlots);
}

std::uint64_t Window::packets_of(std::uint64_t chunks, bool exponents, int window) {
  return chunks + (exponents ? std::min(chunks, static_cast<std::uint64_t>(window)) : 0);
}

void Window::start(std::uint64_t chunks, bool exponents) {
  GHOSTRANK_ASSERT(ended());
  first_ = (first_ + packets_) % (2 * window_);
  chunks_ = chunks;
  ahead_ = exponents ? std::min(chunks, window_) : 0;
  packets_ = chunks + ahead_;
  ended_ = 0;
  done_.assign(packets_, false);
  left_.assign(packets_, false);
  ready_.clear();
  next_ = 0;
  for (std::uint64_t p = 0; p < std::min(packets_, window_); ++p) let_leave(p);
}

}  // namespace ghostrank::switchml
