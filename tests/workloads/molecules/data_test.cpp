#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "helpers.hpp"
#include "molecules/data/qm9.hpp"
#include "molecules/data/xyz.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::workload::molecules {
namespace {

std::string file_name(std::int64_t number) { return fmt::format("dsgdb9nsd_{:06}.xyz", number); }

// A made-up water with that number and energy, in QM9's form.
std::string water(std::int64_t number, const std::string& u0 = "-76.404702") {
  return fmt::format(
      "3\ngdb {}\t799.58812\t437.90386\t282.94545\t1.8511\t6.31\t-0.2928\t0.0687\t0.3615\t19.0002\t0.021375\t{}\t"
      "-76.401867\t-76.400922\t-76.422349\t6.002\t\n"
      "O\t-0.0343604951\t 0.9775395708\t 0.0076015923\t-0.589706\n"
      "H\t 0.0647664923\t 0.0205721989\t 0.0015346341\t 0.294853\n"
      "H\t 0.8717903737\t 1.3007924048\t 0.0006931336\t 0.294853\n"
      "1671.4222\t3803.6305\t3907.698\t\nO\tO\t\nInChI=1S/H2O/h1H2\tInChI=1S/H2O/h1H2\n",
      number, u0);
}

class MoleculeFiles : public testing::Test {
 protected:
  std::string folder() const { return folder_.path().string(); }
  std::string fault(bool strict = true) const {
    const auto data = read_qm9(folder(), strict);
    if (data) return "no fault";
    const std::string& message = data.error().message;
    return message.rfind(folder(), 0) == 0 ? message.substr(folder().size()) : message;
  }
  // Replaces `from` in a good file and returns the fault that reading it gives.
  std::string fault_with(const std::string& from, const std::string& to) const {
    std::string text = water(1);
    const std::size_t at = text.find(from);
    if (at == std::string::npos) return "the test's text is not in the file";
    folder_.write(file_name(1), text.replace(at, from.size(), to));
    return fault();
  }

  test::TempDir folder_;
};

TEST(FaultCases, F135NumbersWithStarAndCaret) {
  EXPECT_DOUBLE_EQ(*parse_qm9_number("1.5*^-6"), 1.5e-6);
  EXPECT_DOUBLE_EQ(*parse_qm9_number("2.*^-7"), 2e-7);
  EXPECT_DOUBLE_EQ(*parse_qm9_number("-1.25*^-3"), -0.00125);
  EXPECT_DOUBLE_EQ(*parse_qm9_number("0."), 0);
  for (const char* bad : {"1.5*^", "1.5x", "*^-6", "nan", "inf", "", "1.5*^-6*^2"}) EXPECT_FALSE(parse_qm9_number(bad));
  const std::string text =
      "1\ngdb 7\t1\t1\t1\t0.\t1\t1\t1\t1\t1\t1\t-40.5\t1\t1\t1\t1\t\nC\t1.5*^-6\t-0.25\t2.*^-7\t-1.25*^-3\n";
  const auto molecule = parse_xyz(text, "a.xyz");
  ASSERT_TRUE(molecule) << molecule.error().message;
  EXPECT_EQ(molecule->positions, (std::vector<float>{1.5e-6F, -0.25F, 2e-7F}));
  const auto damaged = parse_xyz(std::string(text).replace(text.find("-1.25*^-3"), 9, "1.5*^"), "a.xyz");
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().message, "a.xyz:3: '1.5*^' is not a number");
}

TEST_F(MoleculeFiles, F136ExclusionsGoByNumberFromOne) {
  for (std::int64_t number = 1; number <= 5; ++number) folder_.write(file_name(number), water(number));
  folder_.write("uncharacterized.txt",
                "\n\n\n\nList of molecules among the 133885\ndifferent SMILES\n=====\n# Index  SMILES\n=====\n"
                "      2    NC(=N)C#N   NC(=N)C#N   6.0\n      4    NC(=N)C=O  NC  5.6\n=====\n");
  const auto data = read_qm9(folder(), true);
  ASSERT_TRUE(data) << data.error().message;
  std::vector<std::int64_t> kept;
  for (const Molecule& molecule : data->molecules) kept.push_back(molecule.number);
  EXPECT_EQ(kept, (std::vector<std::int64_t>{1, 3, 5}));
  ASSERT_EQ(data->notes.size(), 1U);
  EXPECT_EQ(data->notes[0], "5 molecules read, 2 excluded by uncharacterized.txt, 3 kept");
}

TEST_F(MoleculeFiles, F137EnergiesSayTheirUnitAndReference) {
  EXPECT_NEAR(-40.47893 * kElectronvolts, -1101.4878, 1e-4);
  EXPECT_EQ(fmt::format("{:.4f} meV", 0.001 * kElectronvolts * 1000), "27.2114 meV");
  folder_.write(file_name(1), water(1));
  folder_.write(file_name(2), water(2, "-76.304702"));
  DataOptions options;
  options.folder = folder();
  const auto data = kSchnet.open_data(options, Split::train);
  ASSERT_TRUE(data);
  const auto notes = (*data)->notes();
  EXPECT_NE(notes.back().find("energy of atomisation U0"), std::string::npos);
  EXPECT_NE(notes.back().find(" eV"), std::string::npos);
  const std::string path = (folder_ / "predicted.csv").string();
  auto writer = kSchnet.write_predictions(path, **data);
  ASSERT_TRUE(writer);
  EXPECT_TRUE((*writer)->write({0}, torch::full({4}, 1.5F)));
  EXPECT_TRUE((*writer)->close());
  // The mean of one molecule is its own energy, and its deviation counts as 1 eV.
  const auto number = dynamic_cast<const MoleculeData&>(**data).molecule(0).number;
  const double energy = (number == 1 ? -76.404702 : -76.304702) + 75.064579 + 2 * 0.500273;
  EXPECT_EQ(folder_.read("predicted.csv"),
            fmt::format("Molecule,U0 of atomisation [eV],Predicted [eV]\n{},{:.6f},{:.6f}\n", number,
                        energy * kElectronvolts, energy * kElectronvolts + 1.5));
}

TEST_F(MoleculeFiles, FaultsNameFileAndLine) {
  const std::string file = "/" + file_name(1);
  EXPECT_EQ(fault_with("3\ngdb", "x\ngdb"), file + ":1: 'x' is not a number of atoms");
  EXPECT_EQ(fault_with("3\ngdb", "0\ngdb"), file + ":1: 0 atoms (1 to 1000 can be)");
  EXPECT_EQ(fault_with("3\ngdb", "4\ngdb"),
            file + ":6: atom 4 of 4: 3 fields where symbol, x, y, z and charge are expected");
  EXPECT_EQ(fault_with("3\ngdb", "2\ngdb").rfind(file + ":5: line 1 says 2 atoms, but here is 'H\t 0.87", 0), 0U);
  EXPECT_EQ(fault_with("gdb 1", "gdb 2"), file + ":2: the molecule's number is 2, not the file name's");
  EXPECT_EQ(fault_with("gdb 1", "gdb"), file + ":2: 16 fields where 'gdb', a number and 15 properties are expected");
  EXPECT_EQ(fault_with("O\t-0.03", "Si\t-0.03"), file + ":3: unknown element 'Si' (QM9 has H, C, N, O, F)");
  EXPECT_EQ(fault_with("0.0205721989", "nan"), file + ":4: 'nan' is not a number");
  EXPECT_EQ(fault_with("-76.404702", "inf"), file + ":2: 'inf' is not a number");
  EXPECT_EQ(fault_with("0.8717903737\t 1.3007924048\t 0.0006931336", "0.0647664923\t 0.0205721989\t 0.0015"),
            file + ":5: two atoms are in the same place");
  folder_.write(file_name(1), water(1).substr(0, 250));
  EXPECT_EQ(fault().substr(0, file.size() + 3), file + ":5:");
  folder_.write(file_name(1), "");
  EXPECT_EQ(fault(), file + ": the file is empty");
}

TEST_F(MoleculeFiles, FaultyOnesAreSkippedAndCountedUnlessStrict) {
  folder_.write(file_name(1), water(1));
  folder_.write("xyz-readme.txt", "no molecule");
  folder_.write(file_name(2), "rubbish");
  folder_.write(file_name(3), water(3));
  folder_.write("DSGDB9NSD_000004.XYZ", water(4));
  EXPECT_EQ(fault(true), "/" + file_name(2) + ":1: 'rubbish' is not a number of atoms");
  const auto data = read_qm9(folder(), false);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->molecules.size(), 3U);
  ASSERT_EQ(data->notes.size(), 2U);
  EXPECT_EQ(data->notes[0], fmt::format("1 molecules with a fault are left out, the first: {}/{}:1: 'rubbish' is not a "
                                        "number of atoms",
                                        folder(), file_name(2)));
  EXPECT_NE(data->notes[1].find("uncharacterized.txt: absent"), std::string::npos);
  folder_.write("dsgdb9nsd_1.xyz", water(1));
  EXPECT_EQ(fault(false), ": molecule 1 comes twice");
}

TEST_F(MoleculeFiles, NothingToReadIsAnErrorWithARemedy) {
  EXPECT_EQ(fault(), ": neither .xyz nor .sdf files");
  folder_.write("xyz.tar.xz", "");
  const auto packed = read_qm9(folder(), false);
  ASSERT_FALSE(packed);
  EXPECT_NE(packed.error().hint.find("tar -xf xyz.tar.xz"), std::string::npos);
  EXPECT_FALSE(read_qm9(folder() + "/absent", false));
  folder_.write("one/" + file_name(1), "rubbish");
  const auto none = read_qm9(folder() + "/one", false);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no molecule could be read"), std::string::npos);
  folder_.write("one/" + file_name(1), water(1));
  DataOptions options;
  options.folder = folder() + "/one";
  EXPECT_FALSE(kSchnet.open_data(options, Split::validation) && kSchnet.open_data(options, Split::train));
}

const char* const kSdf =
    "gdb_3\n  x\n\n  3  2  0     0  0  0  0  0  0999 V2000\n"
    "   -0.0344    0.9775    0.0076 O   0  0  0  0  0  0  0  0  0  0  0  0\n"
    "    0.0648    0.0206    0.0015 H   0  0  0  0  0  0  0  0  0  0  0  0\n"
    "    0.8718    1.3008    0.0007 H   0  0  0  0  0  0  0  0  0  0  0  0\n"
    "  1  2  1  0  0  0  0\n  1  3  1  0  0  0  0\nM  END\n$$$$\n";

TEST_F(MoleculeFiles, SdfReadsColumnsInAnyOrder) {
  folder_.write("gdb9.sdf", kSdf);
  folder_.write("gdb9.sdf.csv", "homo,U0,mol_id\n1,-76.404702,gdb_3\n");
  const auto data = read_qm9(folder(), true);
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->molecules.size(), 1U);
  EXPECT_EQ(data->molecules[0].number, 3);
  EXPECT_EQ(data->molecules[0].elements, (std::vector<std::uint8_t>{8, 1, 1}));
  EXPECT_FLOAT_EQ(data->molecules[0].positions[6], 0.8718F);
  EXPECT_DOUBLE_EQ(data->molecules[0].u0, -76.404702);
}

TEST_F(MoleculeFiles, SdfFaultsNameFileAndLine) {
  const std::string sdf = kSdf;
  const auto with = [&](const std::string& text, const std::string& csv) {
    folder_.write("gdb9.sdf", text);
    folder_.write("gdb9.sdf.csv", csv);
    return fault();
  };
  const std::string csv = "mol_id,u0\ngdb_3,-76.4\n";
  EXPECT_EQ(with(sdf, "mol_id,u\ngdb_3,1\n"), "/gdb9.sdf.csv:1: no column u0");
  EXPECT_EQ(with(sdf, "mol_id,u0\ngdb_3,x\n"), "/gdb9.sdf.csv:2: u0 'x' is not a number");
  EXPECT_EQ(with(sdf, "mol_id,u0\ngdb_3,1\ngdb_3,2\n"), "/gdb9.sdf.csv:3: gdb_3 comes twice");
  EXPECT_EQ(with(sdf, csv + "gdb_4,1\n"), "/gdb9.sdf.csv: 1 rows have no block in " + folder() + "/gdb9.sdf");
  EXPECT_EQ(with(sdf, "mol_id,u0\ngdb_4,1\n"), "/gdb9.sdf:11: gdb_3 has no row in " + folder() + "/gdb9.sdf.csv");
  EXPECT_EQ(with(sdf.substr(0, sdf.find("$$$$")), csv), "/gdb9.sdf:10: the file ends within the block of gdb_3");
  EXPECT_EQ(with(sdf.substr(0, 150), csv).substr(0, 12), "/gdb9.sdf:6:");
  EXPECT_EQ(with(std::string(sdf).replace(sdf.find("  3  2"), 3, "  0"), csv), "/gdb9.sdf:4: gdb_3 has no atoms");
  EXPECT_EQ(with(std::string(sdf).replace(sdf.find("  3  2"), 3, "  4"), csv),
            "/gdb9.sdf:8: unknown element '' in atom 4 of 4 (QM9 has H, C, N, O, F)");
  EXPECT_EQ(with(std::string(sdf).replace(sdf.find("0.0206"), 6, "   nan"), csv), "/gdb9.sdf:6: 'nan' is not a number");

  EXPECT_EQ(
      with(std::string(sdf).replace(sdf.find("-0.0344    0.9775    0.0076"), 27, " 0.0648    0.0206    0.0015"), csv),
      "/gdb9.sdf:7: gdb_3 has two atoms in the same place");

  // Not strict: the fault costs one block, its row included, and the next block is read.
  const std::string two = std::string(sdf).replace(sdf.find(" O "), 3, " X ") + std::string(sdf).replace(0, 5, "gdb_5");
  folder_.write("gdb9.sdf", two);
  folder_.write("gdb9.sdf.csv", csv + "gdb_5,-76\ngdb_9,1\n");
  const auto data = read_qm9(folder(), false);
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->molecules.size(), 1U);
  EXPECT_EQ(data->molecules[0].number, 5);
  EXPECT_EQ(
      data->notes[0],
      fmt::format("1 molecules with a fault are left out, the first: {}/gdb9.sdf:5: unknown element 'X' in atom 1 "
                  "of 3 (QM9 has H, C, N, O, F)",
                  folder()));
  EXPECT_EQ(data->notes[1], "1 rows of the CSV file have no molecule in the SDF file");
}

TEST_F(MoleculeFiles, MadeDataIsReadBackAndLearnable) {
  std::ostringstream out;
  MakeDataOptions options;
  options.folder = folder() + "/made";
  options.count = 60;
  ASSERT_TRUE(kPna.make_data(options, {out, out}));
  const std::string first = folder_.read("made/" + file_name(1));
  ASSERT_TRUE(kPna.make_data(options, {out, out}));
  EXPECT_EQ(folder_.read("made/" + file_name(1)), first);
  const auto data = read_qm9(options.folder, true);
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->molecules.size(), 60U);
  for (const Molecule& molecule : data->molecules) {
    const GeneratedMolecule made = generate_molecule(options.seed, molecule.number);
    ASSERT_EQ(molecule.elements, made.molecule.elements);
    EXPECT_NEAR(atomisation_energy(molecule), made.energy, 1e-4);
    for (std::size_t i = 0; i < molecule.positions.size(); ++i) {
      EXPECT_FLOAT_EQ(molecule.positions[i], made.molecule.positions[i]);
    }
  }
  options.seed = 43;
  ASSERT_TRUE(kPna.make_data(options, {out, out}));
  EXPECT_NE(folder_.read("made/" + file_name(1)), first);
}

TEST_F(MoleculeFiles, SyntheticMoleculesAreAsLargeAsThoseOfQm9) {
  double atoms = 0, edges = 0, triplets = 0;
  for (std::int64_t number = 1; number <= 400; ++number) {
    const MoleculeSizes sizes = measure(generate_molecule(42, number).molecule, 5);
    EXPECT_LE(sizes.atoms, 29);
    atoms += static_cast<double>(sizes.atoms) / 400;
    edges += static_cast<double>(sizes.edges) / 400;
    triplets += static_cast<double>(sizes.triplets) / 400;
  }
  // Means of 1,359 molecules of QM9 at 5 angstrom: 17.84 atoms, 276 edges, 4183 triplets.
  EXPECT_NEAR(atoms, 17.84, 0.8);
  EXPECT_NEAR(edges, 276, 28);
  EXPECT_NEAR(triplets, 4183, 600);
}

TEST_F(MoleculeFiles, PartsDoNotOverlapAndScaleComesFromTraining) {
  std::ostringstream out;
  MakeDataOptions make;
  make.folder = folder() + "/made";
  make.count = 200;
  ASSERT_TRUE(kSchnet.make_data(make, {out, out}));
  DataOptions options;
  options.folder = make.folder;
  options.batch = 16;
  const auto train = kSchnet.open_data(options, Split::train);
  options.seed = 7;  // changes nothing
  const auto validation = kSchnet.open_data(options, Split::validation);
  ASSERT_TRUE(train && validation);
  EXPECT_EQ((*train)->size() + (*validation)->size(), 200);
  EXPECT_GT((*validation)->size(), 8);
  EXPECT_LT((*validation)->size(), 36);
  std::set<std::int64_t> numbers;
  for (const auto* data : {&*train, &*validation}) {
    for (std::int64_t i = 0; i < (*data)->size(); ++i) {
      numbers.insert(dynamic_cast<const MoleculeData&>(**data).molecule(i).number);
    }
  }
  EXPECT_EQ(numbers.size(), 200U);
  EXPECT_EQ((*train)->state(), (*validation)->state());
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < (*train)->size(); ++i) all.push_back(i);
  EXPECT_NEAR((*train)->baselines(all)[0].second, 1, 1e-9);
  const auto batch = (*train)->load({0, 1, 2}, 0);
  ASSERT_TRUE(batch);
  const auto& molecules = dynamic_cast<const MoleculeData&>(**train);
  EXPECT_NEAR(batch->tensors[6][1].item<double>() * molecules.scale().deviation + molecules.scale().mean,
              atomisation_energy(molecules.molecule(1)), 1e-4);

  options.state = "U0 atomisation eV -70.5, 8";
  const auto inference = kSchnet.open_data(options, Split::validation);
  ASSERT_TRUE(inference);
  EXPECT_EQ(dynamic_cast<const MoleculeData&>(**inference).scale().mean, -70.5);
  EXPECT_EQ(dynamic_cast<const MoleculeData&>(**inference).scale().deviation, 8);
  for (const char* bad : {"rubbish", "U0 atomisation eV 1", "U0 atomisation eV 1, 0", "U0 atomisation eV 1, x"}) {
    options.state = bad;
    EXPECT_FALSE(kSchnet.open_data(options, Split::validation)) << bad;
  }
}

class RealMolecules : public MoleculeFiles {
 protected:
  void SetUp() override {
    const auto shared = test::shared_dir();
    if (shared.empty()) GTEST_SKIP() << "the folder of data samples is absent";
    if (std::system("xz --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "xz is not installed";
    qm9_ = shared / "data/qm9";
    run(fmt::format("tar -xJf '{}/xyz.tar.xz' -C '{}'", qm9_.string(), folder()));
  }
  static void run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

  std::filesystem::path qm9_;
};

TEST_F(RealMolecules, AllAreRead) {
  const auto data = read_qm9(folder(), true);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->molecules.size(), 1359U);
  std::int64_t atoms = 0, edges = 0, most = 0;
  double energy = 0;
  for (const Molecule& molecule : data->molecules) {
    atoms += molecule.atoms();
    const MoleculeSizes sizes = measure(molecule, 5);
    edges += sizes.edges;
    most = std::max(most, sizes.neighbours);
    // Every bound molecule of QM9 is so by 2.5 to 6 eV an atom.
    const double share = atomisation_energy(molecule) / static_cast<double>(molecule.atoms());
    EXPECT_LT(share, -2.5) << molecule.number;
    EXPECT_GT(share, -6.5) << molecule.number;
    energy += share;
  }
  EXPECT_EQ(atoms, 24245);
  EXPECT_EQ(edges, 375030);
  EXPECT_EQ(most, 26);
  run(fmt::format("xz -dc '{}/uncharacterized.txt.xz' > '{}/uncharacterized.txt'", qm9_.string(), folder()));
  const auto fewer = read_qm9(folder(), true);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->notes.back(), fmt::format("1359 molecules read, {} excluded by uncharacterized.txt, {} kept",
                                             1359 - fewer->molecules.size(), fewer->molecules.size()));
  EXPECT_LT(fewer->molecules.size(), 1359U);
  for (const Molecule& molecule : fewer->molecules) EXPECT_NE(molecule.number, 58);
}

TEST_F(RealMolecules, BothFormsAgree) {
  const auto xyz = read_qm9(folder(), true);
  folder_.write("sdf/x", "");
  for (const char* ending : {".sdf", ".sdf.csv"}) {
    std::filesystem::copy_file(qm9_ / (std::string("gdb9_sample") + ending),
                               folder_ / (std::string("sdf/gdb9") + ending));
  }
  const auto sdf = read_qm9(folder() + "/sdf", true);
  ASSERT_TRUE(xyz && sdf);
  ASSERT_EQ(sdf->molecules.size(), 21U);
  for (std::size_t i = 0; i < 10; ++i) {
    const Molecule& a = xyz->molecules[i];
    const Molecule& b = sdf->molecules[i];
    ASSERT_EQ(a.number, b.number);
    EXPECT_EQ(a.elements, b.elements);
    EXPECT_EQ(a.u0, b.u0);
    for (std::size_t k = 0; k < a.positions.size(); ++k) EXPECT_NEAR(a.positions[k], b.positions[k], 6e-5F);
  }
  // MoleculeNet's own u0_atom of methane, -395.999594594 kcal/mol (23.060548 kcal/mol an eV).
  EXPECT_NEAR(atomisation_energy(sdf->molecules[0]) * 23.060548, -395.999594594, 2e-3);
}

TEST_F(RealMolecules, StaticShapesWasteLittle) {
  DataOptions options;
  options.folder = folder();
  options.batch = 16;
  options.graphs = true;
  for (const Workload* workload : all_workloads()) {
    const auto data = workload->open_data(options, Split::train);
    ASSERT_TRUE(data);
    std::map<std::size_t, int> counts;
    std::int64_t content = 0, room = 0;
    for (std::int64_t first = 0; first + 16 <= (*data)->size(); first += 16) {
      std::vector<std::int64_t> samples;
      for (std::int64_t i = 0; i < 16; ++i) samples.push_back((first * 7 + i * 83) % (*data)->size());
      const auto batch = (*data)->load(samples, 0);
      ASSERT_TRUE(batch);
      ++counts[batch->shape];
      for (const std::int64_t sample : samples) {
        content += measure(dynamic_cast<const MoleculeData&>(**data).molecule(sample), rule_of(*workload).cutoff).edges;
      }
      room += batch->tensors[3].size(1);
    }
    EXPECT_LE(counts.size(), 4U);
    EXPECT_LT(static_cast<double>(room), 1.12 * static_cast<double>(content)) << workload->name;
  }
}

}  // namespace
}  // namespace ergometer::workload::molecules
