#include "tools/calibrate/product_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace ghostrank {
namespace {

// cuBLAS stores matrices by columns, so PyTorch passes the operands swapped: the letters are those
// of the weight, then of the rows.
constexpr std::pair<std::string_view, Operands> kLayouts[] = {
    {"tn", Operands::forward}, {"nn", Operands::input}, {"nt", Operands::weight}};

// Parts of names, in lower case, that stand for a type; the first that is found counts. nvjet's
// letters are those of both operands and of the result: h for fp16, t for bf16.
constexpr std::pair<std::string_view, OperandType> kTypes[] = {
    {"bf16", OperandType::bf16},         {"bfloat16", OperandType::bf16},
    {"nvjet_tst", OperandType::bf16},    {"nvjet_sm90_tst", OperandType::bf16},
    {"fp16", OperandType::fp16},         {"f16f16", OperandType::fp16},
    {"h16816", OperandType::fp16},       {"s16816gemm_f16", OperandType::fp16},
    {"hgemm", OperandType::fp16},        {"h884", OperandType::fp16},
    {"s884gemm_f16", OperandType::fp16}, {"nvjet_hsh", OperandType::fp16},
    {"tf32", OperandType::tf32},         {"sgemm", OperandType::fp32}};

constexpr std::array<std::string_view, 4> kProducts{"gemm", "nvjet", "cutlass", "matmul"};

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// The letters as a word of their own, or with the result's layout behind them, as in TNT.
bool has_layout(std::string_view name, std::string_view letters) {
  for (std::size_t at = name.find(letters); at != std::string_view::npos;
       at = name.find(letters, at + 1)) {
    std::size_t end = at + letters.size();
    if (at > 0 && is_letter_or_digit(name[at - 1])) continue;
    if (end < name.size() && (name[end] == 't' || name[end] == 'n')) ++end;
    if (end == name.size() || !is_letter_or_digit(name[end])) return true;
  }
  return false;
}

}  // namespace

ProductName product_name(std::string_view kernel) {
  std::string name(kernel);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  ProductName out;
  out.adds_parts = has("splitkreduce");
  out.is_product =
      !out.adds_parts && std::any_of(kProducts.begin(), kProducts.end(), has) && !has("flash");
  if (!out.is_product) return out;
  for (const auto& [part, type] : kTypes)
    if (!out.type && has(part)) out.type = type;
  for (const auto& [letters, operands] : kLayouts)
    if (!out.operands && has_layout(name, letters)) out.operands = operands;
  return out;
}

}  // namespace ghostrank
