// The redfish backend against a service over true TLS.
#include "device/redfish/redfish.hpp"

#include "device/fake_tree.hpp"
#include "device/node_meter.hpp"
#include "device/redfish/documents.hpp"
#include "meters/fake_redfish.hpp"

namespace ergometer::test {
namespace {

using namespace std::chrono_literals;

const std::string kEnvironment = "/redfish/v1/Chassis/1/EnvironmentMetrics";

struct Lab : FakeTree {
  explicit Lab(const std::string& address = "127.0.0.1") : bmc(address) {
    options.only = {"redfish=" + bmc.host()};
    options.meter_settings = {
        {"redfish.user", "monitor"}, {"redfish.password", "s3cret"}, {"redfish.ca-file", bmc.certificate()}};
  }
  void simple(const std::string& environment = R"({"PowerWatts":{"Reading":412.5},"EnergykWh":{"Reading":2.5}})") {
    bmc.chassis("1", "RackMount", true, FakeRedfish::link("EnvironmentMetrics", kEnvironment));
    bmc.set(kEnvironment, environment);
  }
  Discovery found() const {
    Host machine = host();
    machine.load = &Library::open;
    Discovery out;
    discover_redfish(machine, options, out);
    return out;
  }
  FakeRedfish bmc;
  DiscoverOptions options;
};

std::string reason(const Discovery& found) {
  EXPECT_TRUE(found.sensors.empty());
  if (found.node.absences.size() != 1) return "no absence";
  EXPECT_EQ(found.warnings.size(), 1u) << "who asks for a meter is told that it is not there";
  return found.node.absences[0].reason + " | " + found.node.absences[0].remedy;
}

#define NEEDS_CURL()                                                           \
  if (!Library::open("libcurl.so.4") && !Library::open("libcurl-gnutls.so.4")) \
  GTEST_SKIP() << "libcurl is not installed"

TEST(Redfish, EnvironmentMetricsOverASession) {
  NEEDS_CURL();
  Lab lab;
  lab.simple();
  {
    const auto found = lab.found();
    const auto sensor = sensor_named(found, "redfish");
    ASSERT_TRUE(sensor);
    EXPECT_EQ(read_row(*sensor), (Values{412.5, 9e6}));
    EXPECT_EQ(channel(*sensor, "redfish_power_w").scope, Scope::node);
    EXPECT_EQ(channel(*sensor, "redfish_energy_j").behaviour, Behaviour::counter);
    EXPECT_EQ(channel(*sensor, "redfish_energy_j").unit, "J");
    EXPECT_EQ(lab.bmc.logins, 1);
    EXPECT_NE(sensor->info().note.find("EnvironmentMetrics"), std::string::npos);
    EXPECT_EQ(sensor->info().note.find("s3cret"), std::string::npos);
  }
  EXPECT_EQ(lab.bmc.logouts, 1) << "controllers allow a handful of sessions";
}

TEST(Redfish, AnExpiredSessionIsOpenedAnew) {
  NEEDS_CURL();
  Lab lab;
  lab.simple();
  const auto found = lab.found();
  const auto sensor = sensor_named(found, "redfish");
  ASSERT_TRUE(sensor);
  lab.bmc.expire();
  EXPECT_EQ(read_row(*sensor)[0], 412.5);
  EXPECT_EQ(lab.bmc.logins, 2);
}

TEST(Redfish, PowerSuppliesAreAdded) {
  NEEDS_CURL();
  Lab lab;
  const std::string base = "/redfish/v1/Chassis/1/PowerSubsystem";
  lab.bmc.chassis("1", "RackMount", true, FakeRedfish::link("PowerSubsystem", base));
  lab.bmc.set(base, R"({"CapacityWatts":3000)" + FakeRedfish::link("PowerSupplies", base + "/PowerSupplies") + "}");
  lab.bmc.set(base + "/PowerSupplies",
              fmt::format(R"({{"Members":[{{"@odata.id":"{0}/P/0"}},{{"@odata.id":"{0}/P/1"}}]}})", base));
  for (const int i : {0, 1}) {
    const auto supply = fmt::format("{}/P/{}", base, i);
    lab.bmc.set(supply, R"({"Id":"0")" + FakeRedfish::link("Metrics", supply + "/Metrics") + "}");
    lab.bmc.set(supply + "/Metrics",
                fmt::format(R"({{"InputPowerWatts":{{"Reading":{}}},"OutputPowerWatts":{{"Reading":1}}}})", 200 + i));
  }
  const auto found = lab.found();
  const auto sensor = sensor_named(found, "redfish");
  ASSERT_TRUE(sensor);
  EXPECT_EQ(read_row(*sensor), (Values{401.0}));
  // A supply without a value: the sum of the rest is not the node's power.
  lab.bmc.set(base + "/P/1/Metrics", R"({"InputPowerWatts":{"Reading":null}})");
  Readings out;
  const auto read = sensor->read(out);
  ASSERT_FALSE(read);
  EXPECT_TRUE(out.rows.empty());
}

TEST(Redfish, TheOlderPowerDocument) {
  NEEDS_CURL();
  Lab lab;
  lab.bmc.chassis("Self", "RackMount", true, FakeRedfish::link("Power", "/redfish/v1/Chassis/Self/Power"));
  lab.bmc.set("/redfish/v1/Chassis/Self/Power",
              R"({"PowerControl":[{"PowerConsumedWatts":333,"PowerCapacityWatts":900},{"PowerConsumedWatts":120}]})");
  const auto found = lab.found();
  EXPECT_EQ(read_row(*sensor_named(found, "redfish")), (Values{333.0})) << "further controls are parts of the first";
}

TEST(Redfish, TheBladeIsReadNotItsEnclosure) {
  NEEDS_CURL();
  Lab lab;
  for (const auto& [id, type, watts] : {std::tuple{"Enclosure", "Enclosure", 4000}, {"Blade7", "Blade", 500}}) {
    const auto path = fmt::format("/redfish/v1/Chassis/{}/EnvironmentMetrics", id);
    lab.bmc.chassis(id, type, true, FakeRedfish::link("EnvironmentMetrics", path));
    lab.bmc.set(path, fmt::format(R"({{"PowerWatts":{{"Reading":{}}}}})", watts));
  }
  EXPECT_EQ(read_row(*sensor_named(lab.found(), "redfish")), (Values{500.0}));
  lab.options.meter_settings["redfish.chassis"] = "Enclosure";
  EXPECT_EQ(read_row(*sensor_named(lab.found(), "redfish")), (Values{4000.0}));
  lab.options.meter_settings["redfish.chassis"] = "Blade8";
  EXPECT_NE(reason(lab.found()).find("Blade8"), std::string::npos);
}

TEST(Redfish, ACertificateThatDoesNotVerify) {
  NEEDS_CURL();
  Lab lab;
  lab.simple();
  lab.options.meter_settings.erase("redfish.ca-file");
  const auto why = reason(lab.found());
  EXPECT_NE(why.find("does not verify"), std::string::npos) << why;
  EXPECT_NE(why.find("ca-file"), std::string::npos) << why;
  EXPECT_EQ(lab.bmc.logins, 0) << "the password must not reach an unknown host";
  lab.options.meter_settings["redfish.verify"] = "false";
  EXPECT_EQ(read_row(*sensor_named(lab.found(), "redfish"))[0], 412.5);
}

TEST(Redfish, ACertificateOfAnotherHost) {
  NEEDS_CURL();
  Lab lab("10.9.8.7");
  lab.simple();
  EXPECT_NE(reason(lab.found()).find("does not verify"), std::string::npos);
  EXPECT_EQ(lab.bmc.logins, 0);
}

TEST(Redfish, AWrongPasswordOrNone) {
  NEEDS_CURL();
  Lab lab;
  lab.simple();
  lab.options.meter_settings["redfish.password"] = "guess";
  auto why = reason(lab.found());
  EXPECT_NE(why.find("401"), std::string::npos) << why;
  EXPECT_EQ(why.find("guess"), std::string::npos) << why;
  lab.bmc.refusal = 400;  // as some controllers answer a wrong account
  EXPECT_EQ(reason(lab.found()), why);
  lab.options.meter_settings.erase("redfish.user");
  EXPECT_NE(reason(lab.found()).find("no account"), std::string::npos);
  // An account in the host's place would stand in the list of processes.
  lab.options.meter_settings["redfish.user"] = "monitor";
  lab.options.only = {"redfish=monitor:s3cret@bmc"};
  EXPECT_NE(reason(lab.found()).find("is no host name"), std::string::npos);
}

TEST(Redfish, GarbageZeroNullAndErrorsAreMissing) {
  NEEDS_CURL();
  Lab lab;
  lab.simple(R"({"PowerWatts":{"Reading":412.5}})");
  const auto found = lab.found();
  const auto sensor = sensor_named(found, "redfish");
  ASSERT_TRUE(sensor);
  const auto code_of = [&](const std::string& body) {
    lab.bmc.set(kEnvironment, body);
    Readings out;
    const auto read = sensor->read(out);
    EXPECT_TRUE(out.rows.empty()) << body;
    return read ? ErrorCode::internal : read.error().code;
  };
  EXPECT_EQ(code_of("<html>busy</html>"), ErrorCode::corrupt);
  EXPECT_EQ(code_of(""), ErrorCode::corrupt);
  EXPECT_EQ(code_of("[1,2]"), ErrorCode::corrupt);
  EXPECT_EQ(code_of(std::string(2 << 20, ' ')), ErrorCode::corrupt);
  for (const auto* value : {"0", "null", "-5", "\"412\"", "1e300", "{}"})
    EXPECT_EQ(code_of(fmt::format(R"({{"PowerWatts":{{"Reading":{}}}}})", value)), ErrorCode::unavailable) << value;
  lab.bmc.status = 503;
  EXPECT_EQ(code_of("{}"), ErrorCode::unavailable);
  lab.bmc.status = 200;
  lab.bmc.remove(kEnvironment);
  Readings out;
  EXPECT_EQ(sensor->read(out).error().code, ErrorCode::not_found);
  lab.bmc.set(kEnvironment, R"({"PowerWatts":{"Reading":400}})");
  EXPECT_EQ(read_row(*sensor)[0], 400.0);
}

TEST(Redfish, TheSameValueForEverIsToldOnce) {
  NEEDS_CURL();
  Lab lab;
  lab.simple(R"({"PowerWatts":{"Reading":412.5}})");
  const auto found = lab.found();
  const auto sensor = sensor_named(found, "redfish");
  ASSERT_TRUE(sensor);
  Readings out;
  for (int i = 0; i < 70; ++i) {
    lab.clock->mono += 1'000'000'000;
    ASSERT_TRUE(sensor->read(out));
  }
  EXPECT_EQ(count_events(out, "stuck"), 1u);
  lab.bmc.set(kEnvironment, R"({"PowerWatts":{"Reading":413}})");
  ASSERT_TRUE(sensor->read(out));
  EXPECT_EQ(count_events(out, "back"), 1u);
}

// Longer than any wait of ours: the answer does not come, the search ends all the same and the sensor goes on looking.
TEST(Redfish, AnAnswerAfterTwentySeconds) {
  NEEDS_CURL();
  Lab lab;
  lab.simple();
  lab.bmc.delay_s = 20;
  const auto found = lab.found();
  const auto sensor = sensor_named(found, "redfish");
  ASSERT_TRUE(sensor);
  EXPECT_EQ(sensor->info().channels.size(), 2u);
  Readings out;
  const auto read = sensor->read(out);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::timeout);
  EXPECT_TRUE(out.rows.empty());
  lab.bmc.delay_s = 0;
  EXPECT_EQ(read_row(*sensor), (Values{412.5, 9e6}));
}

TEST(Redfish, NobodyThereAndNoLibrary) {
  NEEDS_CURL();
  Lab lab;
  lab.options.only = {"redfish=127.0.0.1:1"};
  EXPECT_NE(reason(lab.found()).find("127.0.0.1:1"), std::string::npos);
  Host machine = lab.host();
  machine.load = [](const std::string& name) -> Result<std::shared_ptr<Library>> {
    return fail(ErrorCode::not_found, name);
  };
  Discovery found;
  discover_redfish(machine, lab.options, found);
  EXPECT_NE(reason(found).find("libcurl"), std::string::npos);
}

TEST(Redfish, NotAskedForMeansNothing) {
  Lab lab;
  lab.options.only.clear();
  const auto found = lab.found();
  EXPECT_TRUE(found.sensors.empty());
  EXPECT_TRUE(found.node.absences.empty());
  EXPECT_EQ(lab.bmc.reads, 0);
}

TEST(Redfish, PathsOutsideTheHostAreLeftOut) {
  const auto members = redfish::parse_members(
      R"({"Members":[{"@odata.id":"https://evil/x"},{"@odata.id":"@evil/x"},{"@odata.id":"/ok"},{"@odata.id":"/a\r\nb"}]})");
  ASSERT_TRUE(members);
  EXPECT_EQ(*members, std::vector<std::string>{"/ok"});
}

}  // namespace
}  // namespace ergometer::test
