#include "profiles/trace/trace_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <zlib.h>

#include "profiles/error.h"

namespace ghostrank {

namespace {

// Some editors begin a text with it; it is no part of the text. No binary format begins so.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

TraceFile::TraceFile(const std::string& path) : path_(path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Error(path + ": is a folder; name the files in it");
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw Error(path + ": cannot be read; check the path");
  gzbuffer(file, 128 << 10);  // reads of at least twice this size are not copied
  file_ = file;
}

TraceFile::~TraceFile() { gzclose(static_cast<gzFile>(file_)); }

std::size_t TraceFile::read(char* to, std::size_t size) {
  constexpr std::size_t kMost = 1 << 30;
  auto* file = static_cast<gzFile>(file_);
  const int got = gzread(file, to, static_cast<unsigned>(std::min(size, kMost)));
  int status = Z_OK;
  const char* text = gzerror(file, &status);
  if (got < 0 || (status != Z_OK && status != Z_STREAM_END))
    throw Error(path_ + ": byte " +
                std::to_string(taken_ + static_cast<std::size_t>(std::max(got, 0))) +
                " unpacked: " + (status == Z_BUF_ERROR ? "the gzip data ends too early" : text) +
                "; copy the file again");
  const bool marked = taken_ == 0 && std::string_view(to, got).starts_with(kByteOrderMark);
  taken_ += got;
  if (taken_ > kMaxUnpackedBytes)
    throw Error(path_ + ": unpacks to more than 8 GiB; cut the trace into smaller ones");
  if (!marked) return got;
  std::memmove(to, to + kByteOrderMark.size(), got - kByteOrderMark.size());
  return got - kByteOrderMark.size();
}

std::string read_trace_file(const std::string& path) {
  TraceFile file(path);
  std::error_code ignored;
  std::string text;
  const std::uintmax_t bytes = std::filesystem::file_size(path, ignored);
  if (!ignored && bytes < kMaxUnpackedBytes) text.reserve(bytes + 1);
  for (std::size_t step = 64 << 10;; step = std::min<std::size_t>(2 * step, 16 << 20)) {
    const std::size_t before = text.size();
    text.resize(before + step);
    const std::size_t got = file.read(text.data() + before, step);
    text.resize(before + got);
    if (got == 0) return text;
  }
}

std::string trace_head(const std::string& path, std::size_t size) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored) &&
      !std::filesystem::is_directory(path, ignored))
    throw Error(path +
                ": is no regular file, and its beginning is read twice; write it to one first");
  TraceFile file(path);
  std::string text(std::max(size, TraceFile::kLeast), '\0');
  std::size_t have = 0;
  for (std::size_t got;
       have < size && (got = file.read(text.data() + have, text.size() - have)) > 0;)
    have += got;
  text.resize(std::min(have, size));
  return text;
}

}  // namespace ghostrank
