// The ipmi backend over a fake libfreeipmi that answers scripted bytes, and over the true library as far as a machine
// without a controller goes.
#include "device/ipmi/ipmi.hpp"

#include "device/fake_tree.hpp"
#include "device/ipmi/link.hpp"
#include "fakes/freeipmi/fake_freeipmi.hpp"

namespace ergometer::test {
namespace {

using ipmi::Bytes;
using namespace std::chrono_literals;

void put(Bytes& bytes, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

Bytes device_id(std::uint32_t manufacturer) {
  Bytes b{0x01, 0x00, 0x20, 0x01, 0x03, 0x10, 0x02, 0xBF};
  put(b, manufacturer, 3);
  put(b, 0x1234, 2);
  return b;
}

Bytes statistics(Bytes head, int watts, std::uint32_t stamp, std::uint32_t period, int average) {
  for (const int w : {watts, 90, 700, average}) put(head, static_cast<std::uint64_t>(w), 2);
  put(head, stamp, 4);
  put(head, period, 4);
  return head;
}

Bytes dcmi(int watts, std::uint32_t stamp, std::uint8_t state = 0x40, std::uint32_t period_ms = 1000,
           int average = 300) {
  auto b = statistics({0x02, 0x00, 0xDC}, watts, stamp, period_ms, average);
  b.push_back(state);
  return b;
}

Bytes node_manager(int watts, std::uint32_t stamp) {
  auto b = statistics({0xC8, 0x00, 0x57, 0x01, 0x00}, watts, stamp, 1000, 300);
  b.push_back(0x50);
  return b;
}

// A machine with /dev/ipmi0 and a controller of `manufacturer` that answers what the members say.
struct Board : FakeTree {
  explicit Board(std::uint32_t manufacturer = 10876) {
    auto opened = Library::open(FAKE_FREEIPMI);
    EXPECT_TRUE(opened);
    library = *opened;
    bmc = library->function<FakeBmc*()>("fake_bmc")();
    *bmc = FakeBmc{};
    bmc->answer = [this, manufacturer](std::uint8_t netfn, const Bytes& rq, int channel) -> std::optional<Bytes> {
      last_request = rq;
      last_netfn = netfn;
      if (netfn == 0x06) return device_id(manufacturer);
      if (netfn == 0x2C) return power;
      if (netfn == 0x2E && channel >= 0) return channel == me_channel ? parts[rq.at(5)] : std::nullopt;
      if (netfn == 0x3A) return rq.at(2) == 0x08 ? xcc_power : xcc_energy;
      return Bytes{rq.at(0), 0xC1};
    };
    write("/dev/ipmi0", "");
  }
  Host machine() const {
    Host h = host();
    h.load = [this](const std::string& name) -> Result<std::shared_ptr<Library>> {
      if (name == "libfreeipmi.so.17") return library;
      return fail(ErrorCode::not_found, name);
    };
    return h;
  }
  Discovery found(const DiscoverOptions& options = {}) const {
    Discovery out;
    discover_ipmi(machine(), options, out);
    return out;
  }

  std::shared_ptr<Library> library;
  FakeBmc* bmc = nullptr;
  std::optional<Bytes> power = dcmi(360, 1000);
  std::optional<Bytes> xcc_energy, xcc_power;
  std::map<int, std::optional<Bytes>> parts;
  int me_channel = 6;
  Bytes last_request;
  std::uint8_t last_netfn = 0;
};

const Absence* absence(const Discovery& found, const std::string& interface) {
  for (const auto& a : found.node.absences)
    if (a.interface == interface) return &a;
  return nullptr;
}

TEST(Ipmi, DcmiPowerAsRawBytes) {
  Board board;
  const auto found = board.found();
  const auto sensor = sensor_named(found, "ipmi-dcmi");
  ASSERT_TRUE(sensor);
  EXPECT_TRUE(found.warnings.empty()) << "bit 6 of the state: measurement is active";
  EXPECT_EQ(board.bmc->host, (board / "/dev/ipmi0").string());
  board.power = dcmi(361, 1001, 0x40, 1000, 355);
  EXPECT_EQ(read_row(*sensor), (Values{361.0, 355.0}));
  EXPECT_EQ(board.last_netfn, 0x2C);
  EXPECT_EQ(board.last_request, (Bytes{0x02, 0xDC, 0x01, 0x00, 0x00}));
  const auto& power = channel(*sensor, "dcmi_power_w");
  EXPECT_EQ(power.domain, "node");
  EXPECT_EQ(power.scope, Scope::node);
  EXPECT_TRUE(power.in_total);
  const auto& average = channel(*sensor, "dcmi_average_power_w");
  EXPECT_EQ(average.window, Nanos(1s));
  EXPECT_FALSE(average.in_total);
  EXPECT_EQ(sensor->info().interval, Nanos(1s));
}

TEST(Ipmi, AMeanSinceTheLastResetIsNoRollingMean) {
  Board board;
  board.power = dcmi(360, 1000, 0x40, 86'400'000);
  EXPECT_EQ(sensor_named(board.found(), "ipmi-dcmi")->info().channels.size(), 1u);
}

TEST(Ipmi, F22_ZeroWithMeasurementOffIsUnavailable) {
  Board board;
  board.power = dcmi(0, 1000, 0x00);
  const auto found = board.found();
  EXPECT_TRUE(found.sensors.empty());
  ASSERT_TRUE(absence(found, "ipmi-dcmi"));
  EXPECT_NE(absence(found, "ipmi-dcmi")->reason.find("not active"), std::string::npos);
  EXPECT_FALSE(absence(found, "ipmi-dcmi")->remedy.empty());
}

TEST(Ipmi, F22_PowerWithMeasurementOffIsUsedWithAWarning) {
  Board board;
  board.power = dcmi(360, 1000, 0x00);
  const auto found = board.found();
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_EQ(found.warnings[0].code, "dcmi-state");
  Readings out;
  EXPECT_EQ(read_row(*sensor_named(found, "ipmi-dcmi"), out)[0], 360.0);
  EXPECT_EQ(count_events(out, "note"), 1u);
}

TEST(Ipmi, F22_UnsupportedCommandIsAReasonAndStopsNothingElse) {
  Board board(ipmi::kLenovo);
  board.power = Bytes{0x02, 0xC1};
  board.xcc_power = Bytes{0x32, 0x00, 1, 0, 0, 0, 0, 0, 0x2C, 0x01, 0, 0, 0, 0, 0, 0};
  const auto found = board.found();
  ASSERT_TRUE(absence(found, "ipmi-dcmi"));
  EXPECT_NE(absence(found, "ipmi-dcmi")->reason.find("unsupported"), std::string::npos);
  EXPECT_EQ(read_row(*sensor_named(found, "ipmi-xcc-power"))[0], 300.0);
}

TEST(Ipmi, ZeroInTheMiddleOfARunIsMissing) {
  Board board;
  const auto sensor = sensor_named(board.found(), "ipmi-dcmi");
  for (const auto& bytes : {dcmi(0, 1001), dcmi(0, 1001, 0x00), dcmi(0xFFFF, 1002)}) {
    board.power = bytes;
    Readings out;
    const auto read = sensor->read(out);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::unavailable);
    EXPECT_TRUE(out.rows.empty());
  }
}

TEST(Ipmi, GarbageErrorCodeAndSilence) {
  Board board;
  const auto sensor = sensor_named(board.found(), "ipmi-dcmi");
  const auto code_of = [&](std::optional<Bytes> bytes) {
    board.power = std::move(bytes);
    Readings out;
    const auto read = sensor->read(out);
    EXPECT_TRUE(out.rows.empty());
    return read ? ErrorCode::internal : read.error().code;
  };
  auto cut = dcmi(360, 1001);
  cut.resize(12);
  auto other_group = dcmi(360, 1001);
  other_group[2] = 0xDB;
  EXPECT_EQ(code_of(Bytes{}), ErrorCode::corrupt);
  EXPECT_EQ(code_of(Bytes{0x55, 0xAA, 0x01}), ErrorCode::corrupt);
  EXPECT_EQ(code_of(cut), ErrorCode::corrupt);
  EXPECT_EQ(code_of(other_group), ErrorCode::corrupt);
  EXPECT_EQ(code_of(Bytes{0x02, 0xC0}), ErrorCode::unavailable) << "node busy";
  EXPECT_EQ(code_of(Bytes{0x02, 0xC3}), ErrorCode::timeout);
  EXPECT_EQ(code_of(Bytes{0x02, 0xD4}), ErrorCode::permission_denied);
  EXPECT_EQ(code_of(std::nullopt), ErrorCode::timeout);
  // After silence the session is opened anew.
  const int opened = board.bmc->opened;
  board.power = dcmi(365, 1002);
  EXPECT_EQ(read_row(*sensor)[0], 365.0);
  EXPECT_EQ(board.bmc->opened, opened + 1);
}

TEST(Ipmi, AnOldTimeStampIsNoNewReadingAndIsToldOnce) {
  Board board;
  const auto sensor = sensor_named(board.found(), "ipmi-dcmi");
  board.power = dcmi(360, 2000);
  Readings out;
  for (int i = 0; i < 90; ++i) {
    board.clock->mono += 1'000'000'000;
    ASSERT_TRUE(sensor->read(out));
  }
  EXPECT_EQ(out.rows.size(), 1u);
  EXPECT_EQ(count_events(out, "stuck"), 1u);
  board.power = dcmi(380, 2090);
  ASSERT_TRUE(sensor->read(out));
  EXPECT_EQ(out.rows.size(), 2u);
  EXPECT_GE(count_events(out, "back"), 1u);
}

TEST(Ipmi, AControllerWithoutAClockIsReadAllTheSame) {
  Board board;
  const auto sensor = sensor_named(board.found(), "ipmi-dcmi");
  Readings out;
  for (const auto& [watts, stamp] : {std::pair{360, 7u}, {370, 7u}, {380, 7u}}) {
    board.power = dcmi(watts, stamp);
    ASSERT_TRUE(sensor->read(out));
  }
  ASSERT_EQ(out.rows.size(), 3u);
  EXPECT_EQ(out.rows[2].values[0], 380.0);
}

TEST(Ipmi, TheSameValueForEverIsToldOnce) {
  Board board;
  const auto sensor = sensor_named(board.found(), "ipmi-dcmi");
  Readings out;
  for (std::uint32_t i = 0; i < 200; ++i) {
    board.clock->mono += 1'000'000'000;
    board.power = dcmi(360, 2000 + i);
    ASSERT_TRUE(sensor->read(out));
    EXPECT_EQ(count_events(out, "stuck"), i < 60 ? 0u : 1u) << i;
  }
  EXPECT_EQ(out.rows.size(), 200u) << "the readings stay in the record";
  board.power = dcmi(361, 3000);
  ASSERT_TRUE(sensor->read(out));
  EXPECT_EQ(count_events(out, "back"), 1u);
}

TEST(Ipmi, NodeManagerPartsAreBridgedAndNeverAdded) {
  Board board(ipmi::kIntel);
  board.me_channel = 0;
  board.parts = {{0, node_manager(420, 1)}, {1, node_manager(180, 1)}, {2, Bytes{0xC8, 0xC9}}};
  const auto found = board.found();
  const auto sensor = sensor_named(found, "ipmi-nm");
  ASSERT_TRUE(sensor);
  ASSERT_EQ(sensor->info().channels.size(), 2u);
  board.parts = {{0, node_manager(430, 2)}, {1, node_manager(190, 2)}};
  EXPECT_EQ(read_row(*sensor), (Values{430.0, 190.0}));
  EXPECT_EQ(board.last_request, (Bytes{0xC8, 0x57, 0x01, 0x00, 0x01, 0x01, 0x00}));
  EXPECT_TRUE(channel(*sensor, "nm_node_power_w").in_total);
  EXPECT_EQ(channel(*sensor, "nm_cpu_power_w").scope, Scope::package);
  EXPECT_FALSE(channel(*sensor, "nm_cpu_power_w").in_total);
  // One part that fails leaves the other.
  board.parts = {{0, node_manager(431, 3)}, {1, std::nullopt}};
  EXPECT_EQ(read_row(*sensor), (Values{431.0, std::nullopt}));
}

TEST(Ipmi, NodeManagerIsAskedOnlyOnIntelBoardsOrByName) {
  Board board;
  board.parts = {{0, node_manager(420, 1)}};
  EXPECT_EQ(board.found().sensors.size(), 1u);
  DiscoverOptions options;
  options.only = {"ipmi-nm"};
  const auto found = board.found(options);
  ASSERT_EQ(found.sensors.size(), 1u);
  EXPECT_EQ(found.sensors[0]->info().interface, "ipmi-nm");
}

Bytes xcc_energy(std::uint32_t joules, std::uint16_t mj, std::uint32_t s, std::uint16_t ms) {
  Bytes b{0x32, 0x00};
  put(b, 5, 2);
  put(b, joules, 4);
  put(b, mj, 2);
  put(b, s, 4);
  put(b, ms, 2);
  return b;
}

TEST(Ipmi, XccCountsJoulesAtItsOwnTime) {
  Board board(ipmi::kLenovo);
  board.xcc_energy = xcc_energy(1000, 500, 5000, 0);
  const auto sensor = sensor_named(board.found(), "ipmi-xcc-energy");
  ASSERT_TRUE(sensor);
  EXPECT_TRUE(sensor->info().own_time);
  EXPECT_EQ(channel(*sensor, "xcc_energy_j").behaviour, Behaviour::counter);
  EXPECT_EQ(channel(*sensor, "xcc_energy_j").range, 4294967296.0);
  Readings out;
  ASSERT_TRUE(sensor->read(out));
  EXPECT_EQ(board.last_request, (Bytes{0x32, 0x04, 0x02, 0x00, 0x00, 0x00}));
  ASSERT_EQ(out.rows.size(), 1u);
  EXPECT_EQ(out.rows[0].values[0], 1000.5);
  const auto first = out.rows[0].t;
  // 2.5 s later by the controller's clock; the poll itself comes 0.4 s late.
  board.clock->mono += 2'900'000'000;
  board.xcc_energy = xcc_energy(1900, 0, 5002, 500);
  ASSERT_TRUE(sensor->read(out));
  ASSERT_EQ(out.rows.size(), 2u);
  EXPECT_NEAR(seconds(out.rows[1].t - first), 2.5, 1e-6);
  // The same sample again is none.
  ASSERT_TRUE(sensor->read(out));
  EXPECT_EQ(out.rows.size(), 2u);
  // A controller that sets its clock by an hour keeps its place on our clock.
  board.clock->mono += 1'000'000'000;
  board.xcc_energy = xcc_energy(2000, 0, 8602, 0);
  ASSERT_TRUE(sensor->read(out));
  EXPECT_EQ(count_events(out, "clock"), 1u);
  EXPECT_EQ(out.rows.back().t, mono_ns(board.clock->mono));
}

TEST(Ipmi, XccV2GivesAMeanPower) {
  Board board(ipmi::kLenovo);
  Bytes b{0x32, 0x00};
  put(b, 100, 2);
  put(b, 45'000, 4);
  put(b, 0, 2);
  b.resize(34);
  put(b, 7000, 4);
  put(b, 250, 2);
  board.xcc_energy = b;
  const auto sensor = sensor_named(board.found(), "ipmi-xcc-energy");
  ASSERT_TRUE(sensor);
  Readings out;
  ASSERT_TRUE(sensor->read(out));
  EXPECT_EQ(out.rows[0].values[0], 450.0);
  EXPECT_EQ(sensor->info().channels[0].quantity, Quantity::power);
}

TEST(Ipmi, XccTrayIsBoardAndGpus) {
  Board board(ipmi::kLenovo);
  Bytes b{0x32, 0x00};
  put(b, 100, 4);
  put(b, 0, 2);
  for (const int w : {700, 1600, 10, 10}) put(b, static_cast<std::uint64_t>(w), 2);
  board.xcc_power = b;
  const auto sensor = sensor_named(board.found(), "ipmi-xcc-power");
  ASSERT_TRUE(sensor);
  EXPECT_EQ(read_row(*sensor), (Values{2300.0, 700.0, 1600.0}));
  EXPECT_TRUE(channel(*sensor, "xcc_power_w").in_total);
  EXPECT_FALSE(channel(*sensor, "xcc_gpu_board_power_w").in_total);
  EXPECT_EQ(channel(*sensor, "xcc_gpu_board_power_w").scope, Scope::rail);
}

TEST(Ipmi, VendorCommandsGoToNoOtherVendor) {
  Board board;
  board.xcc_energy = xcc_energy(1, 0, 1, 0);
  bool asked = false;
  const auto answer = board.bmc->answer;
  board.bmc->answer = [&](std::uint8_t netfn, Bytes rq, int channel) {
    asked |= netfn == 0x3A;
    return answer(netfn, std::move(rq), channel);
  };
  board.found();
  EXPECT_FALSE(asked);
}

TEST(Ipmi, NoDeviceFileNoLibrary) {
  Board board;
  std::filesystem::remove(board / "/dev/ipmi0");
  auto found = board.found();
  EXPECT_TRUE(found.sensors.empty());
  ASSERT_TRUE(absence(found, "ipmi"));
  EXPECT_NE(absence(found, "ipmi")->remedy.find("modprobe"), std::string::npos);
  EXPECT_EQ(board.bmc->commands, 0);

  board.write("/dev/ipmi0", "");
  Host machine = board.host();
  machine.load = [](const std::string& name) -> Result<std::shared_ptr<Library>> {
    return fail(ErrorCode::not_found, name);
  };
  found = {};
  discover_ipmi(machine, {}, found);
  ASSERT_TRUE(absence(found, "ipmi"));
  EXPECT_NE(absence(found, "ipmi")->remedy.find("libfreeipmi17"), std::string::npos);
}

TEST(Ipmi, AForbiddenDeviceFileHasARemedy) {
  Board board;
  if (::geteuid() == 0) GTEST_SKIP() << "root may open every file";
  std::filesystem::permissions(board / "/dev/ipmi0", std::filesystem::perms::none);
  EXPECT_NE(absence(board.found(), "ipmi")->reason.find("permission"), std::string::npos);
}

TEST(Ipmi, OverLanWithTheAccountOfTheSettings) {
  Board board;
  std::filesystem::remove(board / "/dev/ipmi0");
  board.bmc->only_suite = 3;
  board.bmc->error = "cipher suite id unavailable";
  DiscoverOptions options;
  options.only = {"rapl", "ipmi=10.0.0.7"};
  options.meter_settings = {{"ipmi.user", "monitor"}, {"ipmi.password", "s3cret"}};
  const auto found = board.found(options);
  ASSERT_EQ(found.sensors.size(), 1u);
  EXPECT_EQ(board.bmc->host, "10.0.0.7");
  EXPECT_EQ(board.bmc->account, "monitor:s3cret");
  EXPECT_EQ(board.bmc->suite, 3) << "an older controller without suite 17";
  for (const auto& c : found.sensors[0]->info().channels)
    EXPECT_EQ((c.note + c.device + found.sensors[0]->info().note).find("s3cret"), std::string::npos);
}

TEST(Ipmi, AWrongPasswordSaysSo) {
  Board board;
  board.bmc->refuse = true;
  board.bmc->error = "password invalid";
  DiscoverOptions options;
  options.meter_settings = {{"ipmi.host", "bmc"}, {"ipmi.user", "a"}, {"ipmi.password", "s3cret"}};
  const auto found = board.found(options);
  ASSERT_TRUE(absence(found, "ipmi"));
  EXPECT_NE(absence(found, "ipmi")->reason.find("password invalid"), std::string::npos);
  EXPECT_NE(absence(found, "ipmi")->remedy.find("[ipmi]"), std::string::npos);
  EXPECT_EQ(absence(found, "ipmi")->reason.find("s3cret"), std::string::npos);
  EXPECT_EQ(board.bmc->opened, 1) << "only a refused cipher suite is worth a second try";
}

// The true library, where it is installed: no controller answers, and each way ends with its reason.
TEST(Ipmi, TrueFreeIpmiWithoutAController) {
  auto library = Library::open("libfreeipmi.so.17");
  if (!library) GTEST_SKIP() << "libfreeipmi.so.17 is not installed";
  FakeTree tree;
  Host host = tree.host();
  host.load = &Library::open;
  const auto in_band = ipmi::IpmiLink::create(host, {(tree / "/dev/ipmi0").string(), "", "", ""});
  ASSERT_TRUE(in_band) << in_band.error().message;
  const auto no_device = (*in_band)->send(ipmi::dcmi_command());
  ASSERT_FALSE(no_device);
  EXPECT_NE(no_device.error().message.find("cannot open"), std::string::npos);
  // Nobody speaks RMCP+ on this machine.
  const auto lan = ipmi::IpmiLink::create(host, {"", "127.0.0.1", "user", "password"});
  ASSERT_TRUE(lan);
  const auto nobody = (*lan)->send(ipmi::dcmi_command());
  ASSERT_FALSE(nobody);
  EXPECT_NE(nobody.error().message.find("cannot log in"), std::string::npos) << nobody.error().message;
}

}  // namespace
}  // namespace ergometer::test
