"""Each check of tools/ finds what it is there to find, and accepts what is right."""

import json
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


class Symbols(SampleTree):
    check = "check_symbols.py"

    def build(self, header, source):
        self.write("include/lockstep/a.h", "#define LOCKSTEP_EXPORT __attribute__((visibility(\"default\")))\n"
                   "namespace lockstep {\n" + header + "\n}\n")
        self.write("a.cpp", '#include "include/lockstep/a.h"\n' + source)
        subprocess.run(["g++", "-shared", "-fPIC", "-fvisibility=hidden", self.root / "a.cpp", "-o",
                        self.root / "liba.so"], check=True)
        return subprocess.run([ROOT / "tools" / self.check, self.root / "liba.so", self.root],
                              capture_output=True, text=True)

    header = ("struct LOCKSTEP_EXPORT Shape { virtual ~Shape(); };\n"
              "struct LOCKSTEP_EXPORT Square final : Shape { ~Square() override; };\n"
              "LOCKSTEP_EXPORT int area(int width);")
    source = "namespace lockstep { Shape::~Shape() {} Square::~Square() {} int area(int w) { return w; } }\n"

    def test_accepts_what_public_headers_declare(self):
        done = self.build(self.header + "struct LOCKSTEP_EXPORT Plain { int a = 0; };",
                          self.source + "namespace lockstep { int hidden() { return 1; } }\n")
        self.assertEqual((done.returncode, done.stdout), (0, "3 names exported\n"))

    def test_finds_names_that_no_public_header_declares(self):
        done = self.build(self.header, self.source + "namespace lockstep { LOCKSTEP_EXPORT int other() { return 1; } }\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("lockstep::other(): exported", done.stdout)

    def test_finds_declared_names_that_the_library_lacks(self):
        done = self.build(self.header + "LOCKSTEP_EXPORT const char* name();", self.source)
        self.assertEqual(done.returncode, 1)
        self.assertIn("name: declared with LOCKSTEP_EXPORT", done.stdout)


class OneFile(SampleTree):
    """tools/all_headers.py, as style.headers_compile_together uses it."""

    def compiles(self):
        source = self.root / "all.cpp"
        subprocess.run([ROOT / "tools" / "all_headers.py", self.root, source], check=True)
        return subprocess.run(["g++", "-fsyntax-only", "-I", self.root / "include", "-I", self.root / "src", source],
                              capture_output=True).returncode == 0

    def test_finds_two_types_of_one_name(self):
        self.write("include/lockstep/a.h", "namespace lockstep { struct Box { int a; }; }\n")
        self.write("src/lockstep/plot/b.h", "namespace lockstep::plot { struct Box { float b; }; }\n")
        self.assertTrue(self.compiles())
        self.write("src/lockstep/plot/deep/c.h", "namespace lockstep { struct Box { float b; }; }\n")
        self.assertFalse(self.compiles())


class Layers(SampleTree):
    check = "check_layers.py"

    def setUp(self):
        super().setUp()
        self.library("base", "SOURCES a.cpp PUBLIC error.h")
        self.library("net", "DEPS base")
        self.library("comm", "TORCH PUBLIC world.h DEPS net")
        self.library("data", "TORCH DEPS comm")
        self.library("data/files", "DEPS base")

    def library(self, name, text):
        self.write(f"src/lockstep/{name}/CMakeLists.txt", f"lockstep_library({Path(name).name} {text})\n")

    def test_accepts_includes_of_dependencies_and_theirs(self):
        self.write("src/lockstep/comm/a.cpp",
                   '#include <torch/torch.h>\n#include "lockstep/error.h"\n')
        self.write("src/lockstep/net/a.cpp", "#include <fmt/format.h>\nwait_for_exit();\n")
        self.write("src/lockstep/app/main.cpp", '#include "lockstep/comm/a.h"\nstd::cout << 1;\n')
        self.write("include/lockstep/world.h", '#include <c10/core/Device.h>\n#include "lockstep/error.h"\n')
        self.assert_fine()

    def test_finds_private_headers_in_public_ones(self):
        self.write("include/lockstep/world.h", '#include "lockstep/comm/vote.h"\n')
        self.assert_found("include/lockstep/world.h:1: a public header may not include lockstep/comm/vote.h")

    def test_takes_a_public_header_for_its_folder(self):
        self.write("src/lockstep/net/a.cpp", '#include "lockstep/world.h"\n')
        self.write("include/lockstep/error.h", '#include <fmt/format.h>\n#include "lockstep/world.h"\n')
        self.assert_found("net/a.cpp:1: net may not include comm", "error.h:1: a header above the torch line",
                          "error.h:2: base may not include comm")

    def test_finds_public_headers_that_nobody_installs(self):
        self.write("src/lockstep/net/a.cpp", '#include "lockstep/other.h"\n')
        self.assert_found("no lockstep_library() lists other.h under PUBLIC")

    def test_takes_the_library_of_the_deepest_folder(self):
        self.write("src/lockstep/data/files/a.cpp", '#include "lockstep/net/a.h"\n#include <ATen/ATen.h>\n')
        self.write("src/lockstep/data/a.cpp", '#include "lockstep/data/files/a.h"\n')
        self.assert_found("files/a.cpp:1: files may not include net", "files/a.cpp:2: files lies above the torch line",
                          "data/a.cpp:1: data may not include files")

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

    def translate(self, english, chinese):
        self.write("a.md", "English | [\u4e2d\u6587](a.zh-CN.md)\n" + english)
        self.write("a.zh-CN.md", "[English](a.md) | \u4e2d\u6587\n" + chinese)

    def test_accepts_translated_comments_of_commands(self):
        self.translate("```\nls -l   # all files\n```\n`disk is full`\n",
                       "```\nls -l   # \u5168\u90e8\n```\n`disk is full`\n")
        self.assert_fine()

    def test_finds_other_commands_in_the_translation(self):
        self.translate("```\nls -l\n```\n", "```\nls -a\n```\n")
        self.assert_found("a.zh-CN.md: code block 1 is not that of the English page: ls -a")
        self.translate("```\nls -l\n```\n", "\u547d\u4ee4\n")
        self.assert_found("a.zh-CN.md: 0 code blocks, the English page has 1")

    def test_finds_headings_that_the_translation_lacks(self):
        self.translate("# A\n## B\n## C\n", "# \u7532\n## \u4e59\n")
        self.assert_found("a.zh-CN.md: headings are not those of the English page, near '\u4e59'")

    def test_finds_line_breaks_in_chinese(self):
        self.translate("a\n", "\u7532\n\u4e59\n")
        self.assert_found("a.zh-CN.md: a line break within Chinese text")

    def test_finds_messages_that_the_translation_lacks(self):
        self.translate("| `the disk is full` | |\n", "\u78c1\u76d8\n")
        self.assert_found("a.zh-CN.md: does not mention `the disk is full`")

    def test_finds_pages_without_a_way_to_the_other_language(self):
        self.write("a.md", "# A\n")
        self.write("a.zh-CN.md", "# A\n")
        self.write("b.zh-CN.md", "# B\n")
        self.assert_found("a.md: the first line is not", "a.zh-CN.md: the first line is not",
                          "b.zh-CN.md: there is no b.md beside it")

    def test_finds_other_letters_in_sources(self):
        self.write("src/a.cpp", "// caf\u00e9\n")
        self.assert_found("src/a.cpp:1: not ASCII")

    def test_finds_what_is_left_for_later(self):
        self.write("src/a.cpp", "// TO" + "DO: finish\n")
        self.assert_found("left for later")

    def test_finds_comments_that_are_fragments(self):
        self.write("src/a.cpp", "int size = 0;  // O" + "f the file.\n")
        self.assert_found("begins with 'Of'")

    def test_leaves_out_what_trainings_wrote(self):
        self.write("runs/demo/wandb.json", "/" + "home/me/lockstep\n")
        self.assert_fine()
        self.write("src/runs/a.cpp", "// caf\u00e9\n")
        self.assert_found("src/runs/a.cpp:1: not ASCII")

    def test_finds_paths_of_one_machine(self):
        self.write("a.sh", "cd /" + "home/me/lockstep\n")
        self.assert_found("a.sh:1: a path")


class Site(SampleTree):
    """tools/site/check_site.py, on a site of two pages."""

    check = "site/check_site.py"

    def setUp(self):
        super().setUp()
        words = {"zh/how-to/launching/": "\u7aef\u53e3", "zh/how-to/errors/": "\u663e\u5b58", "api/ddp/": "no_sync",
                 "zh/tutorial/first-training/": "\u65ad\u70b9\u7eed\u8bad", "how-to/launching/": "--nproc",
                 "reference/flags/": "--global_batch_size"}
        self.docs = [{"location": place + "#a", "title": "a", "text": f"<p>\u200b{word}\u200b</p>"}
                     for place, word in words.items()]
        self.write_index()
        self.write("index.html", '<a href="a/">a</a><a href="https://example.org">b</a><img src="a.png">')
        self.write("a/index.html", '<a href="../#x">up</a>')

    def write_index(self):
        index = {"config": {"separator": "[\\s\\u200b\\-]+"}, "docs": self.docs}
        self.write("search/search_index.json", json.dumps(index))

    def assert_fine(self):
        self.assertEqual(self.run_check()[0], 0, self.run_check()[1])

    def test_accepts_a_site_that_stands_alone(self):
        self.assert_fine()

    def test_finds_what_is_loaded_from_other_servers(self):
        for text in ('<script src="https://example.org/a.js"></script>', '<link rel="stylesheet" href="//example.org/a.css">',
                     '<link rel="preconnect" href="https://fonts.example.org">', '<pre class="mermaid">a</pre>'):
            with self.subTest(text):
                self.write("a/index.html", text)
                self.assert_found("a/index.html: loads ")
        self.write("a/index.html", "")
        self.write("a.css", "@font-face { src: url(https://example.org/a.woff2) }")
        self.assert_found("a.css: loads https://example.org/a.woff2")

    def test_finds_links_that_lead_nowhere(self):
        self.write("a/index.html", '<a href="../b/">b</a>')
        self.assert_found("a/index.html: the link to ../b/ leads nowhere")

    def test_finds_words_that_the_search_does_not_find(self):
        self.docs[0]["text"] = "\u7aef\u53e3\u88ab\u5360\u7528"  # One word, since nothing cuts it.
        self.write_index()
        self.assert_found("the search does not find \u7aef\u53e3 in zh/how-to/launching/")


del SampleTree  # so that unittest does not run it by itself

if __name__ == "__main__":
    unittest.main()
