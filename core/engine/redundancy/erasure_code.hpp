#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/error.hpp"

namespace forebay {

/// How parity pieces are made of blocks, and blocks got back from them: a Cauchy matrix over
/// GF(2^8), polynomial 0x11d, so that any `parities` of members and pieces together may be lost.
/// Its first row and its first column are ones: the first piece is the sum, as in RAID-5, and all
/// pieces of a single member are copies of it.  [DELAYED]
///
/// Worked example: 3 members, 2 pieces: P0 = a + b + c, P1 = a + g1 b + g2 c. If a and c are lost,
/// fold b out of both and solve for what is left of two equations.
class ErasureCode {
 public:
  static constexpr int most_pieces =
      256;  ///< Members and parities together: elements of the field.

  /// Error: invalid_argument.
  static Result<ErasureCode> make(int members, int parities);

  int members() const { return members_; }
  int parities() const { return parities_; }

  /// Adds a block of `member` to the piece `parity`, or takes it out again, which is the same.
  /// `piece` is at least as long; where a block ends earlier it counts as zeros.
  void fold(int parity, int member, std::span<const std::byte> block,
            std::span<std::byte> piece) const;

  /// `pieces[i]` is of the piece `parities[i]`, and every member but those in `lost` was folded out
  /// of it: turns `pieces[i]` into the block of `lost[i]`. All have one length; there are as many
  /// as were lost.
  void solve(std::span<const int> parities, std::span<const int> lost,
             std::span<const std::span<std::byte>> pieces) const;

 private:
  ErasureCode(int members, int parities);
  std::size_t place(int parity, int member) const {
    return static_cast<std::size_t>(parity) * static_cast<std::size_t>(members_) +
           static_cast<std::size_t>(member);
  }
  std::uint8_t coefficient(int parity, int member) const { return matrix_[place(parity, member)]; }

  static constexpr std::size_t table_bytes = 32;  ///< Of one coefficient, for the library.
  using Table = std::array<std::uint8_t, table_bytes>;

  int members_;
  int parities_;
  std::vector<std::uint8_t> matrix_;  ///< By parity, then member.
  std::vector<Table> tables_;         ///< The same.
};

}  // namespace forebay
