#include "device/amdgpu/gpu_metrics.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/metrics_table.hpp"

namespace ergometer::test {
namespace {

using amdgpu::parse_gpu_metrics;

void expect_values(const std::string& bytes, int content) {
  const auto table = parse_gpu_metrics(bytes);
  ASSERT_TRUE(table) << content << ": " << table.error().message;
  EXPECT_EQ(table->format, 1);
  EXPECT_EQ(table->content, content);
  EXPECT_EQ(table->energy_ticks, 655360u) << content;
  EXPECT_DOUBLE_EQ(static_cast<double>(*table->energy_ticks) * amdgpu::kJoulesPerTick, 10.0);
  EXPECT_EQ(table->energy_bits, content == 0 ? 32 : 64);
  EXPECT_EQ(table->socket_w, 300.0) << content;
  EXPECT_EQ(table->momentary, content >= 4);
  EXPECT_EQ(table->gfx_active, 0.75) << content;
  EXPECT_EQ(table->memory_active, 0.4) << content;
}

TEST(GpuMetrics, EachRevisionByItsHeader) {
  for (int content = 0; content <= 8; ++content) expect_values(metrics_v1(content), content);
}

TEST(GpuMetrics, BothLayoutsOfOneSix) {
  EXPECT_EQ(metrics_v1(6, {}, true).size(), 384u);
  EXPECT_EQ(metrics_v1(6).size(), 1664u);
  expect_values(metrics_v1(6, {}, true), 6);
}

TEST(GpuMetrics, AllOnesAreNoValue) {
  const MetricsValues none{~std::uint64_t{0}, 0xffff, 0xffff, 0xffff};
  for (int content = 0; content <= 8; ++content) {
    const auto table = parse_gpu_metrics(metrics_v1(content, none));
    ASSERT_TRUE(table);
    EXPECT_FALSE(table->energy_ticks) << content;
    EXPECT_FALSE(table->socket_w) << content;
    EXPECT_FALSE(table->gfx_active) << content;
    EXPECT_FALSE(table->memory_active) << content;
  }
}

TEST(GpuMetrics, UnknownRevisionsAreNotGuessed) {
  for (const auto& [format, content] : {std::pair{1, 9}, {4, 0}, {0, 0}, {255, 255}}) {
    auto bytes = metrics_v1(3);
    bytes[2] = static_cast<char>(format);
    bytes[3] = static_cast<char>(content);
    const auto table = parse_gpu_metrics(bytes);
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().code, ErrorCode::unsupported);
    EXPECT_THAT(table.error().message, testing::HasSubstr(fmt::format("{}.{}", format, content)));
  }
  // A size that fits neither layout of 1.6.
  auto odd = metrics_v1(6, {}, true);
  odd.resize(400);
  odd[0] = static_cast<char>(400 & 0xff);
  odd[1] = static_cast<char>(400 >> 8);
  EXPECT_FALSE(parse_gpu_metrics(odd));
}

TEST(GpuMetrics, NeverReadsBeyondTheEnd) {
  for (int content = 0; content <= 8; ++content) {
    const auto whole = metrics_v1(content);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const auto table = parse_gpu_metrics(std::string(whole, 0, n));
      ASSERT_FALSE(table) << content << " with " << n << " bytes";
      EXPECT_EQ(table.error().code, ErrorCode::corrupt);
    }
    // What follows the table is not part of it.
    EXPECT_TRUE(parse_gpu_metrics(whole + std::string(100, 'x')));
    // A size in the header below what the revision needs.
    auto cut = whole;
    cut[0] = 40;
    cut[1] = 0;
    EXPECT_FALSE(parse_gpu_metrics(cut)) << content;
  }
}

TEST(GpuMetrics, ProcessorsWithGraphicsHaveNoCounter) {
  for (const int format : {2, 3}) {
    auto bytes = metrics_v1(3);
    bytes[2] = static_cast<char>(format);
    const auto table = parse_gpu_metrics(bytes);
    ASSERT_TRUE(table);
    EXPECT_TRUE(table->apu);
    EXPECT_FALSE(table->energy_ticks);
    EXPECT_FALSE(table->socket_w);
  }
}

}  // namespace
}  // namespace ergometer::test
