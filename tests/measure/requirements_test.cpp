#include "measure/requirements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergometer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class Named final : public Sensor {
 public:
  Named(std::string name, std::string interface, std::string domain) : Sensor({}) {
    info_.name = std::move(name);
    info_.interface = std::move(interface);
    Channel channel;
    channel.domain = std::move(domain);
    channel.method = Method::counter;
    info_.channels = {channel};
  }
  Result<void> read(Readings&) override { return {}; }
};

Discovery with_package() {
  Discovery found;
  found.sensors.push_back(std::make_shared<Named>("rapl-package0", "rapl-powercap", "package/0"));
  return found;
}

TEST(Requirements, InterfaceSensorOrDomainMeets) {
  const auto found = with_package();
  for (const char* name : {"rapl", "rapl-powercap", "rapl-package0", "package/0", "package"})
    EXPECT_TRUE(check_requirements({name}, found)) << name;
}

TEST(Requirements, KnownButMissingSaysWhyAndWhatHelps) {
  auto found = with_package();
  found.node.absences = {{"nvml", "NVIDIA GPUs", "no driver", "install it"}};
  for (const char* name : {"nvml", "gpu/0", "gpu"}) {
    const auto met = check_requirements({"rapl", name}, found);
    ASSERT_FALSE(met) << name;
    EXPECT_EQ(met.error().code, ErrorCode::unavailable);
    EXPECT_THAT(met.error().message, HasSubstr("no driver"));
    EXPECT_EQ(met.error().hint, "install it");
  }
}

TEST(Requirements, UnknownNameSuggestsTheNearest) {
  const auto met = check_requirements({"rapl-pakage0"}, with_package());
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(met.error().hint, HasSubstr("\"rapl-package0\""));
}

TEST(Requirements, F15_OneWarningForWhatIsForbidden) {
  Discovery found;
  found.node.absences = {
      {"rapl-perf", "package energy", "perf_event_paranoid is 4", "sysctl kernel.perf_event_paranoid=0"},
      {"rapl-powercap", "package-0 energy", "permission denied: /sys/class/powercap/intel-rapl:0/energy_uj", "chmod"},
      {"rapl-powercap", "package-1 energy", "permission denied: /sys/class/powercap/intel-rapl:1/energy_uj", "chmod"},
      {"nvml", "NVIDIA GPUs", "no NVIDIA driver", "install it"}};
  const auto warnings = absence_warnings(found);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].code, "sensor-missing");
  EXPECT_FALSE(warnings[0].remedy.empty());
}

TEST(Requirements, NoWarningWhereAnotherWayMeasures) {
  auto found = with_package();
  found.node.absences = {{"rapl-perf", "package energy", "permission denied", "sysctl"}};
  EXPECT_THAT(absence_warnings(found), IsEmpty());
}

TEST(Requirements, EnvironmentWithoutSecrets) {
  const auto kept = recorded_environment({{"CUDA_VISIBLE_DEVICES", "0"},
                                          {"RANK", "3"},
                                          {"RANKING", "x"},
                                          {"HOME", "/root"},
                                          {"SLURM_JWT", "x"},
                                          {"OMPI_MCA_orte_precondition_transports", "x"},
                                          {"NVIDIA_API_KEY", "x"},
                                          {"OMP_NUM_THREADS", "4"},
                                          {"ERGOMETER_DB_PASSWORD", "x"},
                                          {"ZE_SECRET", "x"}});
  EXPECT_THAT(kept, UnorderedElementsAre(Key("CUDA_VISIBLE_DEVICES"), Key("RANK"), Key("OMP_NUM_THREADS")));
}

}  // namespace
}  // namespace ergometer
