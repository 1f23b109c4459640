#include "core/engine/redundancy/erasure_code.hpp"

#include <fmt/format.h>
#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace forebay {
namespace {

unsigned char* bytes_of(std::span<const std::byte> bytes) {
  // The library takes sources that it does not change as pointers to what may be changed.
  return const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
}

}  // namespace

Result<ErasureCode> ErasureCode::make(int members, int parities) {
  if (members < 1 || parities < 1 || members + parities > most_pieces) {
    return tl::unexpected(Error{
        ErrorKind::invalid_argument, 0,
        fmt::format("there is no code of {} members and {} parity pieces", members, parities)});
  }
  return ErasureCode(members, parities);
}

ErasureCode::ErasureCode(int members, int parities) : members_(members), parities_(parities) {
  std::vector<std::uint8_t> cauchy(place(members + parities, 0));
  gf_gen_cauchy1_matrix(cauchy.data(), members + parities, members);
  // Below the identity. Rows and columns may be scaled: no square part of it becomes singular.
  matrix_.assign(cauchy.begin() + static_cast<std::ptrdiff_t>(place(members, 0)), cauchy.end());
  std::vector<std::uint8_t> of_column(static_cast<std::size_t>(members));
  for (int member = 0; member < members; ++member) {
    of_column[static_cast<std::size_t>(member)] = gf_inv(coefficient(0, member));
  }
  for (int parity = 0; parity < parities; ++parity) {
    const std::uint8_t of_row = gf_inv(gf_mul(coefficient(parity, 0), of_column[0]));
    for (int member = 0; member < members; ++member) {
      std::uint8_t& value = matrix_[place(parity, member)];
      value = gf_mul(gf_mul(value, of_column[static_cast<std::size_t>(member)]), of_row);
    }
  }
  tables_.resize(matrix_.size());
  for (std::size_t i = 0; i < matrix_.size(); ++i) {
    ec_init_tables(1, 1, &matrix_[i], tables_[i].data());
  }
}

void ErasureCode::fold(int parity, int member, std::span<const std::byte> block,
                       std::span<std::byte> piece) const {
  assert(piece.size() >= block.size());
  auto table = tables_[place(parity, member)];
  unsigned char* to = bytes_of(piece);
  ec_encode_data_update(static_cast<int>(block.size()), 1, 1, 0, table.data(), bytes_of(block),
                        &to);
}

void ErasureCode::solve(std::span<const int> parities, std::span<const int> lost,
                        std::span<const std::span<std::byte>> pieces) const {
  assert(parities.size() == lost.size() && pieces.size() == lost.size());
  const auto count = static_cast<int>(lost.size());
  if (count == 0) return;
  std::vector<std::uint8_t> equations;
  for (const int parity : parities) {
    for (const int member : lost) equations.push_back(coefficient(parity, member));
  }
  std::vector<std::uint8_t> inverse(equations.size());
  [[maybe_unused]] const int singular = gf_invert_matrix(equations.data(), inverse.data(), count);
  assert(singular == 0);
  std::vector<std::uint8_t> tables(table_bytes * inverse.size());
  ec_init_tables(count, count, inverse.data(), tables.data());
  const std::size_t length = pieces.front().size();
  std::vector<std::byte> solved(length * lost.size());
  std::vector<unsigned char*> from;
  std::vector<unsigned char*> to;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    from.push_back(bytes_of(pieces[i]));
    to.push_back(bytes_of(std::span(solved).subspan(i * length, length)));
  }
  ec_encode_data(static_cast<int>(length), count, count, tables.data(), from.data(), to.data());
  for (std::size_t i = 0; i < lost.size(); ++i) {
    std::copy_n(solved.begin() + static_cast<std::ptrdiff_t>(i * length), length,
                pieces[i].begin());
  }
}

}  // namespace forebay
