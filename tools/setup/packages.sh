# Debian and Ubuntu packages. Sourced by lockstep.sh.
# shellcheck shell=bash

# One line per package: name, need, and the command or file that shows it is
# there (which also accepts a tool that came by another way than apt).
packages() {
  cat << 'LIST'
g++                 required  command g++
cmake               required  command cmake
ninja-build         required  command ninja
python3             required  command python3
python3-venv        torch     module  ensurepip
libfmt-dev          required  file    /usr/include/fmt/format.h
libyaml-cpp-dev     required  file    /usr/include/yaml-cpp/yaml.h
nlohmann-json3-dev  required  file    /usr/include/nlohmann/json.hpp
libjpeg-dev         required  file    /usr/include/jpeglib.h
libgif-dev          required  file    /usr/include/gif_lib.h
libpng-dev          required  file    /usr/include/png.h
zlib1g-dev          required  file    /usr/include/zlib.h
libisal-dev         required  file    /usr/include/isa-l.h
libpcre2-dev        required  file    /usr/include/pcre2.h
libhdf5-dev         required  file    /usr/include/hdf5/serial/hdf5.h
libavformat-dev     required  file    /usr/include/*/libavformat/avformat.h
libavcodec-dev      required  file    /usr/include/*/libavcodec/avcodec.h
libavutil-dev       required  file    /usr/include/*/libavutil/avutil.h
libswscale-dev      required  file    /usr/include/*/libswscale/swscale.h
ffmpeg              required  file    /usr/lib/*/libavdevice.so.*
libutf8proc-dev     required  file    /usr/include/utf8proc.h
gemmi-dev           required  file    /usr/include/gemmi/pdb.hpp
tao-pegtl-dev       required  file    /usr/include/tao/pegtl.hpp
libprotobuf-dev     required  file    /usr/include/google/protobuf/message_lite.h
protobuf-compiler   required  command protoc
libssl-dev          required  file    /usr/include/openssl/evp.h
libstb-dev          required  file    /usr/include/stb/stb_truetype.h
libfontconfig-dev   required  file    /usr/include/fontconfig/fontconfig.h
fonts-dejavu-core   required  file    /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
libjs-dygraphs      required  file    /usr/share/javascript/dygraphs/dygraph.min.js
zstd                required  command zstd
libdw-dev           optional  file    /usr/include/elfutils/libdwfl.h
libgtest-dev        required  file    /usr/include/gtest/gtest.h
clang-19            optional  command clang++-19
libclang-rt-19-dev  optional  file    /usr/lib/llvm-19/lib/clang/19/lib/linux
clang-format-19     optional  command clang-format-19
clang-tidy-19       optional  command clang-tidy-19
mold                optional  command mold
ccache              optional  command ccache
doxygen             docs      command doxygen
groff-base          optional  command groff
libpython3-dev      optional  file    /usr/lib/*/libpython3*.so.1.0
zsh                 optional  command zsh
fish                optional  command fish
chromium            optional  command chromium
iproute2            optional  command ip
openmpi-bin         optional  command mpirun.openmpi
mpich               optional  command mpiexec.hydra
munge               optional  command munged
slurmctld           optional  command slurmctld
slurmd              optional  command slurmd
slurm-client        optional  command srun
ca-certificates     optional  file    /etc/ssl/certs/ca-certificates.crt
LIST
}

is_there() {
  case "$1" in
    command) command -v "$2" > /dev/null ;;
    file) compgen -G "$2" > /dev/null ;;
    module) python3 -c "import $2" 2> /dev/null ;;
  esac
}

# Names of the packages of the given kinds that are not there.
missing_packages() {
  local name need kind what
  while read -r name need kind what; do
    [[ " $* " == *" $need "* ]] || continue
    is_there "$kind" "$what" || printf '%s ' "$name"
  done < <(packages)
}

# as_root COMMAND...: fails (and asks nothing) where there is no way to be root.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

can_be_root() {
  [[ $(id -u) == 0 ]] || { command -v sudo > /dev/null && sudo -n true 2> /dev/null; }
}

# Keeps the names that this system's package lists know.
known_packages() {
  local name
  for name in "$@"; do
    if [[ -n $(apt-cache madison "$name" 2> /dev/null) ]]; then printf '%s ' "$name"; fi
  done
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y \
    --no-install-recommends "$@"
}

# Installs what is missing. A missing optional package costs speed or a check
# and is tried once per build folder; a missing required one ends the script.
ensure_packages() {
  local required optional tried="$ROOT/build/.packages-tried" kinds=(required)
  has_torch || kinds+=(torch)
  required=$(missing_packages "${kinds[@]}")
  optional=$(missing_packages optional)
  if [[ -z "$required" && ( -z "$optional" || -e "$tried" ) ]]; then return 0; fi

  step "Debian packages: $required$optional"
  # shellcheck disable=SC2086  # a list of names
  install_packages $required $optional || true
  required=$(missing_packages "${kinds[@]}")
  optional=$(missing_packages optional)
  if [[ -n "$required" ]]; then
    [[ ! -e "$LOGS/packages.log" ]] || show_log packages 5
    fail "these packages are missing and could not be installed: $required" \
      "As root, with the network up, type:" \
      "  apt-get update && apt-get install -y --no-install-recommends $required$optional"
  fi
  [[ -z "$optional" ]] || note "going on without: $optional"
  mkdir -p "$ROOT/build"
  touch "$tried"
}

install_packages() {
  local names
  if ! command -v apt-get > /dev/null; then
    note "no apt-get here: this script knows the package names of Debian and Ubuntu only"
    return 1
  fi
  if ! can_be_root; then
    note "not root, and sudo is missing or asks for a password"
    return 1
  fi
  quietly packages as_root apt-get -o DPkg::Lock::Timeout=120 update || return 1
  names=$(known_packages "$@")
  [[ -n "$names" ]] || return 1
  # shellcheck disable=SC2086  # a list of names
  quietly packages apt_install $names
}
