#include "proxies/analysis/read_pattern.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

namespace analysis {
namespace {

/// Numbers in (0, 1]; the standard's distributions differ between libraries.
class Uniform {
 public:
  explicit Uniform(std::uint64_t seed) : random_(seed) {}
  double operator()() { return static_cast<double>((random_() >> 11U) + 1) * 0x1p-53; }

 private:
  std::mt19937_64 random_;
};

/// Whole numbers in proportion to `weights` whose sum is at most `total`.
std::vector<std::uint64_t> shares(const std::vector<double>& weights, std::uint64_t total) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::uint64_t> result;
  result.reserve(weights.size());
  double upto = 0;
  std::uint64_t given = 0;
  for (const double weight : weights) {
    upto += weight;
    const double exact = std::min(upto / sum, 1.0) * static_cast<double>(total);
    const auto end = std::min(static_cast<std::uint64_t>(exact), total);
    result.push_back(end - given);
    given = end;
  }
  return result;
}

}  // namespace

std::vector<Read> read_pattern(const PatternShape& shape) {
  Uniform uniform(shape.seed);
  std::vector<double> sizes(shape.reads);
  std::vector<double> gaps(shape.reads);
  for (double& size : sizes) size = 0.25 + 1.5 * uniform();
  for (double& gap : gaps) gap = -std::log(uniform());  // Exponential: most are small, few large.
  const auto lengths = shares(sizes, shape.reads * shape.mean_bytes);
  const auto skipped = shares(gaps, shape.gap_bytes());
  std::vector<Read> reads;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < shape.reads; ++i) {
    offset += skipped[i];
    reads.push_back({offset, lengths[i]});
    offset += lengths[i];
  }
  // Neighbours change places, in pairs that are drawn without repetition.
  std::vector<std::size_t> pairs(shape.reads / 2);
  std::iota(pairs.begin(), pairs.end(), std::size_t{0});
  for (std::size_t i = 0; i < shape.backward; ++i) {
    const auto rest = static_cast<double>(pairs.size() - i);
    const auto drawn =
        i + std::min(static_cast<std::size_t>(uniform() * rest), pairs.size() - i - 1);
    std::swap(pairs[i], pairs[drawn]);
    std::swap(reads[2 * pairs[i]], reads[2 * pairs[i] + 1]);
  }
  return reads;
}

}  // namespace analysis
