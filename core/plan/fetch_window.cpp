#include "core/plan/fetch_window.hpp"

#include <algorithm>
#include <cmath>

#include "core/plan/fetch_plan.hpp"

namespace forebay {

FetchWindow::FetchWindow(Bytes block, Bytes budget)
    : block_(block), budget_(round_down(budget, block)), opened_(0) {
  close();
}

void FetchWindow::arrive(const Departure& departure, Bytes bytes, std::int64_t now_ns) {
  delivered_ += bytes;
  const std::int64_t took = std::max<std::int64_t>(now_ns - departure.time_ns, 1);
  latency_ns_ = latency_ns_ == 0 ? took : std::min(latency_ns_, took);
  const double rate =
      static_cast<double>(delivered_ - departure.delivered) * 1e9 / static_cast<double>(took);
  bytes_per_second_ = std::max(bytes_per_second_, rate);
}

void FetchWindow::confirm() { opened_ = std::min(opened_ + block_, budget_); }

void FetchWindow::close() { opened_ = std::min(first_blocks * block_, budget_); }

Bytes FetchWindow::bytes() const { return std::min(opened_, wanted()); }

Bytes FetchWindow::wanted() const {
  if (latency_ns_ == 0) return budget_;
  const double product = windows_ahead * bytes_per_second_ * static_cast<double>(latency_ns_) / 1e9;
  if (product >= static_cast<double>(budget_)) return budget_;
  const Bytes rounded = round_up(static_cast<Bytes>(std::ceil(product)), block_);
  return std::max(rounded, std::min(first_blocks * block_, budget_));
}

}  // namespace forebay
