// The account of jobs from the readings of a feed, and their records.
#include "daemon/job_account.hpp"

#include <sys/stat.h>

#include "daemon_world.hpp"

namespace ergometer::test {
namespace {
using namespace daemon;
using namespace std::chrono_literals;

class SetClock final : public Clock {
 public:
  MonoTime now() override { return mono_ns(mono); }
  WallTime wall() override { return wall_ns(mono); }
  bool sleep_until(MonoTime, StopSignal&) override { return true; }
  std::atomic<std::int64_t> mono{0};
};

// A package of 100 W whose counter is read when a test says so.
struct Package {
  std::shared_ptr<SetClock> clock = std::make_shared<SetClock>();
  std::shared_ptr<CountingSensor> sensor = std::make_shared<CountingSensor>();
  Feed feed{sensor, clock, 0ns, {}};
  // The counter shows a joule for each reading before.
  void read_at(double second) {
    clock->mono = static_cast<std::int64_t>(second * 1e9);
    EXPECT_TRUE(feed.wait(feed.ask(), 20s));
  }
};

Node a_node() {
  Node node;
  node.name = "n1";
  return node;
}

MonoTime at(double second) { return mono_ns(static_cast<std::int64_t>(second * 1e9)); }

const DomainEnergy& package_of(const std::vector<DomainEnergy>& domains) {
  EXPECT_EQ(domains.size(), 1u);
  EXPECT_EQ(domains.at(0).domain, "package/0");
  return domains.at(0);
}

TEST(JobAccount, EachJobGetsTheEnergyOfItsTime) {
  Package package;
  JobAccount account(a_node(), 10s);
  account.follow(package.feed);
  for (int i = 1; i <= 21; ++i) package.read_at(10.0 * i);  // 1 J each 10 s: 0.1 W
  account.take(package.feed);
  const auto all = account.energies({{at(10), at(210)}, {at(55), at(105)}});
  EXPECT_NEAR(package_of(all[0]).energy_j.value(), 20, 1e-9);
  EXPECT_NEAR(package_of(all[0]).coverage, 1, 1e-9);
  EXPECT_NEAR(package_of(all[1]).energy_j.value(), 5, 0.01) << "interpolated at both edges";
  EXPECT_NEAR(package_of(all[1]).mean_power_w.value(), 0.1, 1e-3);
  EXPECT_TRUE(package_of(all[1]).in_total);
  EXPECT_EQ(account.newest(), at(210));
}

TEST(JobAccount, AFollowerStartsAtTheEndOfTheFeed) {
  Package package;
  for (int i = 1; i <= 5; ++i) package.read_at(i);
  JobAccount account(a_node(), 1s);
  account.follow(package.feed);
  package.read_at(6);
  account.take(package.feed);
  EXPECT_EQ(account.newest(), at(6));
  ASSERT_EQ(account.last_readings().size(), 1u);
  EXPECT_EQ(account.last_readings()[0].values[0], 6);
}

TEST(JobAccount, GoesOnFromTheLastReadingOfAnEarlierDaemon) {
  Package package;
  for (int i = 1; i <= 6; ++i) package.read_at(i);  // by the earlier one
  JobAccount account(a_node(), 10s);
  account.go_on_from({{"rapl", {"package_0_energy_j"}, at(100), {2.0}}, {"gone", {"x"}, at(100), {1.0}}});
  account.follow(package.feed);
  package.read_at(110);
  package.read_at(120);
  account.take(package.feed);
  const auto all = account.energies({{at(100), at(120)}});
  EXPECT_NEAR(package_of(all[0]).energy_j.value(), 6, 1e-9) << "from 2 to 8";
  EXPECT_EQ(account.last_readings().size(), 2u) << "the sensor that has not come back is kept";
  account.forget();
  EXPECT_TRUE(account.last_readings().empty());
}

TEST(JobAccount, ReadingsOfOtherColumnsAreNoBeginning) {
  Package package;
  JobAccount account(a_node(), 10s);
  account.go_on_from({{"rapl", {"dram_0_energy_j"}, at(100), {0.5}}});
  account.follow(package.feed);
  package.read_at(110);
  account.take(package.feed);
  EXPECT_FALSE(package_of(account.energies({{at(100), at(110)}})[0]).energy_j);
}

TEST(JobAccount, LongJobsKeepABoundedNumberOfReadingsAndTheirEnergy) {
  Package package;
  JobAccount account(a_node(), 1s);
  account.follow(package.feed);
  constexpr int kReadings = 150'000;
  for (int i = 1; i <= kReadings; ++i) {
    package.read_at(i);
    if (i % 1000 == 0) account.take(package.feed);
  }
  account.take(package.feed);
  const auto all = account.energies({{at(1), at(kReadings)}});
  EXPECT_NEAR(package_of(all[0]).energy_j.value(), kReadings - 1, 1e-6);
  EXPECT_NEAR(package_of(all[0]).coverage, 1, 1e-6);
  EXPECT_EQ(account.newest(), at(kReadings)) << "the newest is always kept";
  EXPECT_EQ(account.last_readings()[0].values[0], kReadings);
}

TEST(JobAccount, PartsOfAJobAreJoinedByWhatIsKnown) {
  DomainEnergy a, b, only_first;
  a.domain = b.domain = "package/0";
  only_first.domain = "dram/0";
  a.energy_j = 100, a.uncertainty_j = 1, a.coverage = 1, a.max_power_w = 20;
  b.energy_j = 50, b.uncertainty_j = 2, b.coverage = 0.5, b.max_power_w = 30;
  only_first.energy_j = 7, only_first.uncertainty_j = 0.1, only_first.coverage = 1;
  const auto all = joined({a, only_first}, 10, {b}, 10);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].energy_j, 150);
  EXPECT_EQ(all[0].uncertainty_j, 3);
  EXPECT_EQ(all[0].coverage, 0.75);
  EXPECT_EQ(all[0].mean_power_w, 10);
  EXPECT_EQ(all[0].max_power_w, 30);
  EXPECT_EQ(all[1].energy_j, 7);
  EXPECT_EQ(all[1].coverage, 0.5);
  DomainEnergy unknown;
  unknown.domain = "package/0";
  EXPECT_FALSE(joined({unknown}, 10, {unknown}, 10)[0].energy_j);
  EXPECT_FALSE(joined({unknown}, 10, {unknown}, 10)[0].mean_power_w);
}

JobRecord a_record() {
  JobRecord r;
  r.job = "12_3";
  r.user = "anna";
  r.uid = ::geteuid();
  r.node = "n1";
  r.boot_id = "boot";
  r.version = "0";
  r.begin = at(1);
  r.end = at(2);
  r.begin_wall = wall_ns(10), r.end_wall = wall_ns(20);
  r.interval = 10s;
  DomainEnergy d;
  d.domain = "package/0";
  d.scope = Scope::package;
  d.energy_j = 0.1 + 0.2;
  r.domains = {d};
  r.others["7"] = 0.5;
  r.last = {{"rapl", {"a", "b"}, at(2), {1.5, std::nullopt}}};
  return r;
}

TEST(JobRecord, SurvivesWritingAndReading) {
  TempDir dir;
  const JobFolder folder(dir.path() / "jobs", "n1");
  ASSERT_TRUE(folder.write(a_record()));
  const auto back = folder.read("12_3");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(job_record_text(*back), job_record_text(a_record()));
  EXPECT_FALSE(back->domains[0].uncertainty_j) << "what is missing stays missing";
  EXPECT_FALSE(back->last[0].values[1]);
  struct stat st {};
  ASSERT_EQ(::stat((dir.path() / "jobs/12_3/n1.json").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
  std::vector<Error> problems;
  EXPECT_EQ(folder.running(problems).size(), 1u);
  auto ended = a_record();
  ended.state = JobState::complete;
  ASSERT_TRUE(folder.write(ended));
  EXPECT_TRUE(folder.running(problems).empty());
  EXPECT_EQ(folder.set_aside("12_3").value(), 1);
  ASSERT_TRUE(folder.write(ended));
  EXPECT_EQ(folder.set_aside("12_3").value(), 2);
  EXPECT_EQ(folder.set_aside("none").value(), 0);
}

TEST(JobRecord, ForeignTextIsRefused) {
  const auto good = job_record_text(a_record());
  EXPECT_TRUE(parse_job_record(good, "x"));
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"ergometer.job-part/1", "ergometer.job-part/2"},
                                                        {"\"12_3\"", "\"../x\""},
                                                        {"\"running\"", "\"asleep\""},
                                                        {"\"begin_ns\"", "\"begin\""},
                                                        {"\"package\"", "\"parcel\""},
                                                        {"\"uid\"", "\"gid\""}}) {
    auto bad = good;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_FALSE(parse_job_record(bad, "x")) << to;
  }
}

}  // namespace
}  // namespace ergometer::test
