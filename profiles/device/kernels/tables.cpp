#include "profiles/device/kernels/tables.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "profiles/device/device.h"
#include "profiles/input/csv.h"
#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

constexpr double kMostMicros = 1e9, kMostSize = 1e12;
constexpr std::size_t kMostRows = 100'000;

// One table's rows, with errors that name the place of a cell.
class Rows {
 public:
  Rows(const Settings& settings, std::string key)
      : key_(std::move(key)), mark_(settings.at(key_).mark) {
    const std::string& text = settings.text(key_);
    if (text.empty()) return;
    if (names_kernel_table(text))
      fail(mark_, key_ + ": " + quote(text) +
                      " is no table; a profile in a file may name a CSV file from its folder");
    table_ = parse_csv(text, "");
    if (table_.rows.size() > kMostRows)
      fail(mark_, key_ + " has more than " + std::to_string(kMostRows) + " rows; leave some out");
  }

  std::size_t size() const { return table_.rows.size(); }
  void take(std::size_t row) { row_ = &table_.rows[row]; }

  [[noreturn]] void refuse(const std::string& what) const {
    fail({mark_.source, mark_.line + row_->mark.line, 1}, key_ + ": " + what);
  }

  std::string text(const char* column) const {
    const auto at = table_.column(column);
    if (!at) {
      fail({mark_.source, mark_.line + table_.head.mark.line, 1},
           key_ + ": no column is named " + column + "; name it in the first line");
    }
    if (*at >= row_->fields.size() || row_->fields[*at].empty())
      refuse(std::string("the row has no ") + column + "; every measured kernel needs it");
    return row_->fields[*at];
  }

  double number(const char* column, double most) const {
    const auto value = parse_number(text(column));
    if (!value || !(*value > 0) || *value > most)
      refuse(std::string(column) + " is " + quote(text(column)) +
             "; write a number above 0, up to " + number_text(most));
    return *value;
  }
  double size(const char* column) const {
    const double value = number(column, kMostSize);
    if (value != std::floor(value))
      refuse(std::string(column) + " is " + quote(text(column)) + "; write an integer");
    return value;
  }
  double size(const char* column, double otherwise) const {
    return table_.column(column) ? size(column) : otherwise;
  }
  // Whether there is such a column, and the row has something in it.
  bool has(const char* column) const {
    const auto at = table_.column(column);
    return at && *at < row_->fields.size() && !row_->fields[*at].empty();
  }
  double seconds() const { return number("us", kMostMicros) * 1e-6; }

  template <class Value, std::size_t N>
  Value word(const char* column, const std::pair<Value, std::string_view> (&words)[N]) const {
    std::string known;
    for (const auto& [value, name] : words) {
      if (text(column) == name) return value;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    refuse(std::string(column) + " is " + quote(text(column)) + "; allowed: " + known);
  }

 private:
  std::string key_;
  Mark mark_;
  CsvTable table_;
  const CsvRow* row_ = nullptr;
};

constexpr std::pair<bool, std::string_view> kDirections[] = {{false, "forward"},
                                                             {true, "backward"}};
constexpr std::pair<bool, std::string_view> kMasks[] = {{true, "yes"}, {false, "no"}};

template <class Value, std::size_t N>
std::string name_in(const std::pair<Value, std::string_view> (&words)[N], Value value) {
  for (const auto& [one, name] : words)
    if (one == value) return std::string(name);
  return "";
}

// Refuses a second row of a size, and a time that no GPU of this peak reaches.
template <class Shape>
class Plausible {
 public:
  explicit Plausible(const DeviceProfile& device) : device_(device) {}

  void check(const Rows& rows, const Shape& shape, OperandType type, double flops, double seconds) {
    const std::string word = name_in(kOperandTypes, type);
    const double peak = peak_tflops(device_, type), reached = flops / seconds * 1e-12;
    if (peak == 0)
      rows.refuse("the device has no peak_tflops for " + word + "; add peak_tflops." + word);
    if (reached > peak * kAbovePeak)
      rows.refuse("the kernel would reach " + number_text(std::round(reached)) +
                  " TFLOP/s, more than the device's peak of " + number_text(peak) +
                  "; is the time in microseconds?");
    if (!seen_.insert(std::pair(type, shape)).second)
      rows.refuse("a second row of the same size; keep one");
  }

 private:
  const DeviceProfile& device_;
  std::set<std::pair<OperandType, Shape>> seen_;
};

std::string micros(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", seconds * 1e6);
  return text;
}

std::string row(std::initializer_list<std::string> cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + cell;
  return line + "\n";
}

}  // namespace

bool names_kernel_table(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

KernelTables read_kernel_tables(const Settings& settings, const DeviceProfile& device) {
  KernelTables out;
  Rows products(settings, "kernels.products");
  Plausible<ProductShape> plausible_product(device);
  for (std::size_t i = 0; i < products.size(); ++i) {
    products.take(i);
    ProductShape shape;
    shape.type = products.word("type", kOperandTypes);
    shape.operands = products.word("operands", kOperands);
    shape.m = products.size("m"), shape.n = products.size("n"), shape.k = products.size("k");
    shape.batch = products.size("batch", 1);
    const double seconds = products.seconds();
    plausible_product.check(products, shape, shape.type, shape.flops(), seconds);
    out.products.push_back({shape, seconds});
  }
  Rows transfers(settings, "kernels.transfers");
  std::set<std::tuple<MemoryKernel, double, double>> seen;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    transfers.take(i);
    const MeasuredTransfer one{transfers.word("kind", kMemoryKernels), transfers.size("bytes"),
                               transfers.seconds(),
                               transfers.has("element") ? transfers.size("element") : 0};
    if (!seen.emplace(one.kind, one.bytes, one.element).second)
      transfers.refuse("a second row of the same size; keep one");
    out.transfers.push_back(one);
  }
  Rows attention(settings, "kernels.attention");
  Plausible<FusedAttention> plausible_attention(device);
  for (std::size_t i = 0; i < attention.size(); ++i) {
    attention.take(i);
    FusedAttention shape;
    shape.backward = attention.word("direction", kDirections);
    shape.causal = attention.word("causal", kMasks);
    shape.dropout = attention.has("dropout") && attention.word("dropout", kMasks);
    shape.batch = attention.size("batch"), shape.heads = attention.size("heads");
    shape.key_heads = attention.size("key_heads", shape.heads);
    shape.queries = attention.size("queries"), shape.keys = attention.size("keys");
    shape.width = attention.size("width");
    const OperandType type = attention.word("type", kOperandTypes);
    const double seconds = attention.seconds();
    plausible_attention.check(attention, shape, type, shape.flops(), seconds);
    out.attention.push_back({shape, type, seconds});
  }
  return out;
}

std::string products_csv(const KernelTables& tables) {
  std::string text = "type,operands,m,n,k,batch,us\n";
  for (const auto& [s, seconds] : tables.products)
    text += row({name_in(kOperandTypes, s.type), name_in(kOperands, s.operands), number_text(s.m),
                 number_text(s.n), number_text(s.k), number_text(s.batch), micros(seconds)});
  return text;
}

std::string transfers_csv(const KernelTables& tables) {
  std::string text = "kind,element,bytes,us\n";
  for (const auto& [kind, bytes, seconds, element] : tables.transfers)
    text += row({name_in(kMemoryKernels, kind), element > 0 ? number_text(element) : "",
                 number_text(bytes), micros(seconds)});
  return text;
}

std::string attention_csv(const KernelTables& tables) {
  std::string text = "type,direction,causal,dropout,batch,heads,key_heads,queries,keys,width,us\n";
  for (const auto& [s, type, seconds] : tables.attention)
    text += row({name_in(kOperandTypes, type), name_in(kDirections, s.backward),
                 name_in(kMasks, s.causal), name_in(kMasks, s.dropout), number_text(s.batch),
                 number_text(s.heads), number_text(s.key_heads), number_text(s.queries),
                 number_text(s.keys), number_text(s.width), micros(seconds)});
  return text;
}

}  // namespace ghostrank
