"""Each check of tools/ finds what it is there to find, and accepts what is right."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class SampleTree(unittest.TestCase):
    """A small repository in a temporary folder, and one check run over it."""

    check = ""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copy(ROOT / ".clang-format", self.root)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_check(self):
        done = subprocess.run([ROOT / "tools" / self.check, self.root],
                              capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest(done.stderr)
        return done.returncode, done.stdout + done.stderr

    def assert_found(self, *texts):
        status, output = self.run_check()
        self.assertEqual(status != 0, True, output)
        for text in texts:
            self.assertIn(text, output)

    def assert_fine(self):
        status, output = self.run_check()
        self.assertEqual((status, output), (0, ""))


class Format(SampleTree):
    check = "check_format"

    def test_accepts_formatted_code(self):
        self.write("src/a.cpp", "int answer() { return 42; }\n")
        self.assert_fine()

    def test_finds_unformatted_code(self):
        self.write("src/a.cpp", "int answer( ) {return 42;}\n")
        self.assert_found("src/a.cpp:1")


class Binaries(SampleTree):
    check = "check_binaries.py"
    hardening = ("-Wl,-z,relro,-z,now", "-pie", "-fPIE")

    def link(self, *options):
        self.write("main.c", "int main(void) { return 0; }\n")
        (self.root / "bin").mkdir()
        subprocess.run(["g++", "-x", "c", self.root / "main.c", "-o", self.root / "bin" / "program",
                        *options], check=True)

    def test_accepts_hardened_programs(self):
        self.link(*self.hardening, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib:/usr/lib")
        self.assert_fine()

    def test_finds_run_paths_that_mean_the_working_directory(self):
        for path in ("::::", "/usr/lib:", "lib:/usr/lib"):
            with self.subTest(path):
                shutil.rmtree(self.root / "bin", ignore_errors=True)
                self.link(*self.hardening, f"-Wl,--enable-new-dtags,-rpath,{path}")
                self.assert_found("bin/program: run path", "searched in the working directory")

    def test_finds_what_is_not_hardened(self):
        self.link("-Wl,-z,norelro,-z,lazy,-z,execstack", "-no-pie", "-fno-pie")
        self.assert_found("-z now", "-z relro", "executable stack", "position-independent")

    def test_finds_that_there_is_nothing_to_check(self):
        self.assert_found("no programs or libraries")


class Layers(SampleTree):
    check = "check_layers.py"

    def setUp(self):
        super().setUp()
        self.library("base", "HEADERS error.h")
        self.library("net", "DEPS base")
        self.library("comm", "TORCH DEPS net")

    def library(self, name, text):
        self.write(f"src/lockstep/{name}/CMakeLists.txt", f"lockstep_library({name} {text})\n")

    def test_accepts_includes_of_dependencies_and_theirs(self):
        self.write("src/lockstep/comm/a.cpp",
                   '#include <torch/torch.h>\n#include "lockstep/error.h"\n')
        self.write("src/lockstep/net/a.cpp", "#include <fmt/format.h>\nwait_for_exit();\n")
        self.write("src/lockstep/app/main.cpp", '#include "lockstep/comm/a.h"\nstd::cout << 1;\n')
        self.assert_fine()

    def test_finds_an_include_against_the_direction(self):
        self.write("src/lockstep/base/a.h", '\n#include "lockstep/net/socket.h"\n')
        self.assert_found("src/lockstep/base/a.h:2: base may not include net")

    def test_finds_torch_above_the_torch_line(self):
        self.write("src/lockstep/net/a.cpp", "#include <c10/util/Logging.h>\n")
        self.assert_found("above the torch line")

    def test_finds_third_party_headers_in_headers(self):
        self.write("src/lockstep/net/a.h", "#include <nlohmann/json.hpp>\n")
        self.write("src/lockstep/net/b.h", '#include "lockstep/net/event.pb.h"\n')
        self.assert_found("nlohmann/json.hpp", "net/event.pb.h")

    def test_finds_the_whole_of_torch_in_a_header(self):
        self.write("src/lockstep/comm/a.h", "#include <torch/torch.h>\n")
        self.assert_found("belongs in no header")

    def test_finds_printing_and_exiting(self):
        self.write("src/lockstep/base/a.cpp", "// std::cout\n  std::cerr << 1;\n  exit(1);\n")
        self.assert_found("a.cpp:2: only app/", "a.cpp:3: only app/")


class Sizes(SampleTree):
    check = "check_sizes.py"

    def test_accepts_long_tables_and_short_functions(self):
        table = "const int kTable[] = {\n" + "    1,\n" * 100 + "};\n"
        self.write("src/a.cpp", table + "int f() {\n" + "  g();\n" * 50 + "}\n")
        self.assert_fine()

    def test_finds_long_files(self):
        self.write("src/a.h", "\n" * 251)
        self.write("tests/b.cpp", "\n" * 451)
        self.assert_found("src/a.h: 251 lines", "tests/b.cpp: 451 lines")

    def test_finds_long_functions(self):
        self.write("src/a.cpp", "namespace x {\n\nint f(int a,\n      int b) {\n" +
                   "  g();\n" * 60 + "}\n\n}  // namespace x\n")
        self.assert_found("src/a.cpp:3: function of 63 lines")


class Docs(SampleTree):
    check = "check_docs.py"

    def test_accepts_links_that_lead_somewhere(self):
        self.write("a.md", "[b](b.md#one-part) [c](https://example.org) `[d](e)`\n")
        self.write("b.md", "# One `part`\n")
        self.assert_fine()

    def test_finds_quoted_programs_that_are_not_those_of_the_examples(self):
        self.write("a.cpp", "// A comment.\n#include <a>\n")
        self.write("README.md", "<!-- text of a.cpp -->\n```cpp\n#include <a>\n```\n")
        self.assert_fine()
        self.write("README.md", "<!-- text of a.cpp -->\n```cpp\n#include <b>\n```\n")
        self.assert_found("README.md: the quoted text of a.cpp")

    def test_finds_dead_links(self):
        self.write("README.md", "\n[b](a/b.md)\n")
        self.assert_found("README.md:2: the link to a/b.md")

    def test_finds_links_to_missing_headings(self):
        self.write("a.md", "# Exit codes\n[one](#exit-codes) [two](#signals)\n")
        self.assert_found("a.md:2: #signals: that page has no such heading")

    def test_finds_names_of_missing_pages(self):
        self.write("src/a.cpp", "// See docs/" + "b.md.\n")
        self.assert_found("src/a.cpp:1: there is no page docs/" + "b.md")

    def test_finds_folders_drawn_in_the_wrong_layer(self):
        self.write("src/lockstep/a/CMakeLists.txt", "lockstep_library(a\n  SOURCES a.cpp)\n")
        self.write("src/lockstep/b/CMakeLists.txt", "lockstep_library(b TORCH\n  SOURCES b.cpp\n  DEPS a)\n")
        self.write("a.md", "<!-- layers -->\n```\na | one\n-----\nb | two\n```\n")
        self.assert_fine()
        self.write("a.md", "<!-- layers -->\n```\na b | one\n-----\n```\n")
        self.assert_found("a.md: b stands wrongly in the drawing of the layers (DEPS: a)")

    def test_finds_a_long_readme(self):
        self.write("README.md", "\n" * 121)
        self.assert_found("README.md: 121 lines, at most 120")

    def test_finds_other_letters_in_sources(self):
        self.write("src/a.cpp", "// caf\u00e9\n")
        self.assert_found("src/a.cpp:1: not ASCII")

    def test_finds_what_is_left_for_later(self):
        self.write("src/a.cpp", "// TO" + "DO: finish\n")
        self.assert_found("left for later")

    def test_finds_paths_of_one_machine(self):
        self.write("a.sh", "cd /" + "home/me/lockstep\n")
        self.assert_found("a.sh:1: a path")


del SampleTree  # so that unittest does not run it by itself

if __name__ == "__main__":
    unittest.main()
