#include "load_lstm/series.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/text.hpp"
#include "load_lstm/windows.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::workload::load_lstm {
namespace {

constexpr const char* kHeader = "Time [s],Load [MWh],City\n";

class Series : public testing::Test {
 protected:
  Result<LoadData> read(const std::string& text, bool strict = false) {
    folder_.write("load.csv", text);
    return read_load(path(), strict);
  }
  std::string path() const { return (folder_ / "load.csv").string(); }
  // The message of the error without the folder: "load.csv:3: ...".
  std::string fault(const std::string& text, bool strict = false) {
    const auto data = read(text, strict);
    if (data) return "no error";
    EXPECT_EQ(data.error().fault, Fault::data);
    const std::string& message = data.error().message;
    const auto at = message.find("load.csv");
    return at == std::string::npos ? message : message.substr(at);
  }
  test::TempDir folder_;
};

// `hours` rows from 2019-01-01 00:00 on; the load is `base` plus the hour's number.
std::string rows(const std::string& city, int hours, int skip_at = -1, double base = 100) {
  std::string text;
  for (int i = 0; i < hours; ++i) {
    if (i != skip_at) text += fmt::format("{},{},{}\n", format_time(1546300800 + i * 3600), base + i, city);
  }
  return text;
}

TEST_F(Series, ReadsTheDocumentedForm) {
  const auto data = read(std::string(kHeader) + rows("DK1", 3) + rows("ES", 2, -1, 7));
  ASSERT_TRUE(data);
  ASSERT_EQ(data->cities.size(), 2U);
  EXPECT_EQ(data->cities[0].name, "DK1");
  EXPECT_EQ(data->cities[0].first_hour, 1546300800 / 3600);
  ASSERT_EQ(data->cities[0].runs.size(), 1U);
  EXPECT_EQ(data->cities[0].runs[0].load, (std::vector<double>{100, 101, 102}));
  EXPECT_EQ(data->cities[1].runs[0].load, (std::vector<double>{7, 8}));
  EXPECT_TRUE(data->notes.empty());
}

TEST_F(Series, ColumnsInAnyOrderWithQuotesCrlfAndMark) {
  const auto data = read(
      "\xEF\xBB\xBF\"Country\",Other,\"Load [MW]\",\"Time\"\r\n"
      "\"A, \"\"B\"\"\",x,\"1.5\",2019-01-01 00:00:00\r\n\r\n"
      "\"A, \"\"B\"\"\",,2.5,2019-01-01T01:00:00Z\r\n");
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->cities.size(), 1U);
  EXPECT_EQ(data->cities[0].name, "A, \"B\"");
  EXPECT_EQ(data->cities[0].runs[0].load, (std::vector<double>{1.5, 2.5}));
}

TEST_F(Series, CitiesMayAlternate) {
  const auto data =
      read(std::string(kHeader) + "2019-01-01 00:00:00,1,A\n2019-01-01 00:00:00,5,B\n2019-01-01 01:00:00,2,A\n");
  ASSERT_TRUE(data);
  EXPECT_EQ(data->cities[0].runs[0].load, (std::vector<double>{1, 2}));
  EXPECT_EQ(data->cities[1].runs[0].load, (std::vector<double>{5}));
}

TEST_F(Series, GapsEndARunAndAreNoted) {
  const auto data = read(std::string(kHeader) +
                         "2019-01-01 00:00:00,1,A\n2019-01-01 01:00:00,,A\n2019-01-01 02:00:00,NaN,A\n"
                         "2019-01-01 03:00:00,4,A\n2019-01-01 06:00:00,7,A\n2019-01-01 07:00:00,8,A\n");
  ASSERT_TRUE(data);
  const City& city = data->cities[0];
  ASSERT_EQ(city.runs.size(), 3U);
  EXPECT_EQ(city.runs[1].load, (std::vector<double>{4}));
  EXPECT_EQ(city.runs[2].load, (std::vector<double>{7, 8}));
  EXPECT_EQ(city.runs[2].first_hour - city.first_hour, 6);
  ASSERT_EQ(data->notes.size(), 1U);
  EXPECT_EQ(data->notes[0], "A: 2 hours without a row and 2 without a load, the first at " + path() + ":3");
}

TEST_F(Series, StrictStopsAtTheFirstGap) {
  EXPECT_EQ(fault(std::string(kHeader) + "2019-01-01 00:00:00,1,A\n2019-01-01 01:00:00,,A\n", true),
            "load.csv:3: A: no load");
  EXPECT_EQ(fault(std::string(kHeader) + rows("A", 5, 2), true),
            "load.csv:4: A: 1 hours are missing before 2019-01-01 03:00:00");
}

TEST_F(Series, ErrorsNameFileAndLine) {
  const std::string good = std::string(kHeader) + "2019-01-01 05:00:00,1,A\n";
  EXPECT_EQ(fault(""), "load.csv: the file is empty");
  EXPECT_EQ(fault(kHeader), "load.csv: no rows after the header");
  EXPECT_EQ(fault(good + "2019-01-01 05:00:00,2,A\n"),
            "load.csv:3: A: the hour 2019-01-01 05:00:00 comes twice (before in line 2)");
  EXPECT_EQ(fault(good + "2019-01-01 04:00:00,2,A\n"),
            "load.csv:3: A: the hour 2019-01-01 04:00:00 comes after 2019-01-01 05:00:00 (line 2)");
  EXPECT_EQ(fault(good + "2019-01-01 06:00:00,12 MW,A\n"), "load.csv:3: the load '12 MW' is not a number");
  EXPECT_EQ(fault(good + "2019-01-01 06:00:00,inf,A\n"), "load.csv:3: the load 'inf' is not a number");
  EXPECT_EQ(fault(good + "2019-01-01 06:30:00,1,A\n"),
            "load.csv:3: '2019-01-01 06:30:00' is not the time of a whole hour");
  EXPECT_EQ(fault(good + "yesterday,1,A\n"), "load.csv:3: 'yesterday' is not the time of a whole hour");
  EXPECT_EQ(fault(good + "2019-01-01 06:00:00,1, \n"), "load.csv:3: the city is empty");
  EXPECT_EQ(fault(good + "2019-01-01 06:00:00,1\n"), "load.csv:3: 2 fields where the header has 3");
  EXPECT_EQ(fault(good + "\"2019-01-01 06:00:00,1,A\n"), "load.csv:3: a quote that does not end");
  EXPECT_EQ(fault(std::string("\0\1\2", 3)), "load.csv:1: a NUL byte: this is not a text file");
}

TEST_F(Series, MissingColumnNamesTheNearest) {
  const auto data = read("Time [s],Laod [MWh],City\n2019-01-01 00:00:00,1,A\n");
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().message, path() + ":1: no load column (Load [MWh], Load [MW])");
  EXPECT_NE(data.error().hint.find("nearest is 'Laod [MWh]'"), std::string::npos);
  EXPECT_EQ(fault("2019-01-01 00:00:00,1,A\n"), "load.csv:1: no time column (Time [s], Time, Timestamp, DateTime)");
}

TEST_F(Series, MissingFileNamesThePackedOne) {
  folder_.write("train.csv.xz", "x");
  const auto data = read_load((folder_ / "train.csv").string(), false);
  ASSERT_FALSE(data);
  EXPECT_NE(data.error().hint.find("xz -dk"), std::string::npos);
}

TEST_F(Series, WindowsAreHoursMinus335) {
  for (const auto& [hours, windows] : {std::pair{336, 1}, {337, 2}, {1000, 665}}) {
    const auto data = read(std::string(kHeader) + rows("A", hours));
    ASSERT_TRUE(data);
    const auto set = make_windows(*data, *training_scales(*data));
    ASSERT_TRUE(set);
    EXPECT_EQ(set->size(), windows);
    EXPECT_EQ(set->left_out, 0);
  }
  const auto data = read(std::string(kHeader) + rows("A", 335));
  ASSERT_TRUE(data);
  EXPECT_FALSE(make_windows(*data, *training_scales(*data)));
}

TEST_F(Series, WindowsThatTouchAGapAreLeftOutAndCounted) {
  const auto data = read(std::string(kHeader) + rows("A", 1000, 400));
  ASSERT_TRUE(data);
  const auto set = make_windows(*data, *training_scales(*data));
  ASSERT_TRUE(set);
  EXPECT_EQ(set->size(), (400 - 335) + (599 - 335));
  EXPECT_EQ(set->left_out, 336);
}

TEST_F(Series, EachCityIsScaledByItsTrainingExtremes) {
  const auto train = read(std::string(kHeader) + rows("A", 401, -1, 100) + rows("B", 401, -1, 5000));
  ASSERT_TRUE(train);
  const auto scales = training_scales(*train);
  ASSERT_TRUE(scales);
  EXPECT_EQ((*scales)[1].minimum, 5000);
  EXPECT_EQ((*scales)[1].maximum, 5400);
  EXPECT_DOUBLE_EQ((*scales)[1].mean, 0.5);
  const auto validation = read(std::string(kHeader) + rows("B", 336, -1, 5200));
  ASSERT_TRUE(validation);
  const auto set = make_windows(*validation, *scales);
  ASSERT_TRUE(set);
  const float* values = set->values(set->windows[0]);
  EXPECT_FLOAT_EQ(values[0], 0.5F);
  EXPECT_FLOAT_EQ(values[335], 1.3375F);  // beyond the training maximum: not cut off
  const auto losses = baselines(*set, {0});
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[0].first, "mean_predictor");
  EXPECT_EQ(losses[1].first, "last_week");
  EXPECT_NEAR(losses[1].second, 0.42 * 0.42, 1e-6);  // 168 hours later is 168 MWh more
  double expected = 0;
  for (int hour = 168; hour < 336; ++hour) expected += (hour / 400.0) * (hour / 400.0) / 168;
  EXPECT_NEAR(losses[0].second, expected, 1e-6);
}

TEST_F(Series, UnknownAndConstantCitiesAreErrors) {
  const auto train = read(std::string(kHeader) + rows("A", 400));
  ASSERT_TRUE(train);
  const auto other = read(std::string(kHeader) + rows("A", 400) + rows("Z", 400));
  ASSERT_TRUE(other);
  const auto set = make_windows(*other, *training_scales(*train));
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message, path() + ":402: the city 'Z' is not in the training data");
  const auto constant = read(std::string(kHeader) + "2019-01-01 00:00:00,3,A\n2019-01-01 01:00:00,3,A\n");
  ASSERT_TRUE(constant);
  ASSERT_FALSE(training_scales(*constant));
  EXPECT_EQ(training_scales(*constant).error().message, path() + ":2: A has the same load in every hour");
}

TEST_F(Series, ScalesComeBackFromTextAsTheyWere) {
  const std::vector<Scale> scales = {{"Fran\u00e7a, the \"south\"", 0.1, 1e9 / 3, 1.0 / 3}, {"A B  C", -7, 12.5, 0.5}};
  const auto parsed = parse_scales(to_text(scales));
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*parsed)[i].city, scales[i].city);
    EXPECT_EQ((*parsed)[i].minimum, scales[i].minimum);
    EXPECT_EQ((*parsed)[i].maximum, scales[i].maximum);
    EXPECT_EQ((*parsed)[i].mean, scales[i].mean);
  }
  EXPECT_FALSE(parse_scales("0 1 A\n"));
}

TEST_F(Series, ReadsRealLoad) {
  const auto shared = test::shared_dir();
  if (shared.empty()) GTEST_SKIP() << "the folder of data samples is absent";
  if (std::system("xz --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "xz is not installed";
  for (const char* name : {"train", "valid", "gaps"}) {
    const std::string command = fmt::format("xz -dc '{}/data/load/{}.csv.xz' > '{}'", shared.string(), name,
                                            (folder_ / (std::string(name) + ".csv")).string());
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  const auto train = read_load((folder_ / "train.csv").string(), true);
  const auto validation = read_load((folder_ / "valid.csv").string(), true);
  ASSERT_TRUE(train && validation);
  ASSERT_EQ(train->cities.size(), 6U);
  EXPECT_EQ(make_windows(*train, *training_scales(*train))->size(), 39312 - 6 * 335);
  EXPECT_EQ(make_windows(*validation, *training_scales(*train))->size(), 13248 - 6 * 335);
  EXPECT_FALSE(read_load((folder_ / "gaps.csv").string(), true));
  const auto gaps = read_load((folder_ / "gaps.csv").string(), false);
  ASSERT_TRUE(gaps);
  std::size_t hours = 0;
  for (const City& city : gaps->cities) {
    for (const load_lstm::Run& run : city.runs) hours += run.load.size();
  }
  EXPECT_EQ(hours, 17520U - 26U);
}

}  // namespace
}  // namespace ergometer::workload::load_lstm
