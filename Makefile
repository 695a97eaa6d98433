# Installs the C library, its headers and the command `tsumugi`.
#
#   make install PREFIX=/usr/local          builds with cargo, and installs
#   make install-library DESTDIR=/tmp/pkg   leaves the command out; a package is staged
#   make uninstall PREFIX=/usr/local
#   make install-myth PREFIX=/opt/tsumugi   libmyth.so.0 and its header <myth/myth.h>; not a
#                                           part of `install`, because MassiveThreads' own
#                                           files have these names. And uninstall-myth
#   make install-mpi PREFIX=/opt/tsumugi    libmpi_abi.so.1, mpi.h, mpicc, mpicxx, mpiexec,
#                                           tsumugi's headers and the command `tsumugi`; not a
#                                           part of `install`, because every MPI has such names.
#                                           And uninstall-mpi
#   make install-mpi BUILT=target/debug     installs what cargo has built there, and builds
#                                           nothing; so do install-command and install-myth
#
# The shared library is linked from the static one, by the C compiler, with the symbol
# versions of capi/install/tsumugi.map; both are stripped.
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
CMAKEDIR ?= $(LIBDIR)/cmake/tsumugi
CARGO ?= cargo
CARGOFLAGS ?= --locked
CC ?= cc
INSTALL ?= install
STRIP ?= strip

version := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
soname := libtsumugi.so.0
shared := libtsumugi.so.$(version)
myth := libmyth.so.0
mpi := libmpi_abi.so.1
target := $(or $(CARGO_TARGET_DIR),target)
BUILT ?=
built := $(or $(BUILT),$(target)/release)
build := $(if $(BUILT),@: ,$(CARGO) build --release $(CARGOFLAGS))
staged := $(target)/install
headers := include/tsumugi.h include/tsumugi.hpp include/acp.h
# The parts of tsumugi.hpp, in a folder of their own.
parts := $(wildcard include/tsumugi/*.hpp)
# What a program that is linked with the static library has to link, too.
system := -pthread -lm -ldl -lgcc_s

.PHONY: all library command myth mpi install install-library install-headers install-command \
	uninstall install-myth uninstall-myth install-mpi uninstall-mpi

all: library command

library:
	$(CARGO) build --release --package tsumugi-library $(CARGOFLAGS)
	mkdir -p $(staged)
	cp $(built)/libtsumugi.a $(staged)/libtsumugi.a
	$(STRIP) --strip-debug $(staged)/libtsumugi.a
	$(CC) -shared -o $(staged)/$(shared) -Wl,--whole-archive $(built)/libtsumugi.a \
		-Wl,--no-whole-archive -Wl,-soname,$(soname) \
		-Wl,--version-script,capi/install/tsumugi.map -Wl,--gc-sections \
		-Wl,-z,relro,-z,now,-z,defs $(LDFLAGS) $(system)
	$(STRIP) --strip-unneeded $(staged)/$(shared)

command:
	$(build) --bin tsumugi

myth:
	$(build) --package tsumugi-myth

mpi:
	$(build) --package tsumugi-mpi

install: install-library install-command

install-headers:
	$(INSTALL) -d $(DESTDIR)$(INCLUDEDIR)/tsumugi
	$(INSTALL) -m 644 $(headers) $(DESTDIR)$(INCLUDEDIR)
	$(INSTALL) -m 644 $(parts) $(DESTDIR)$(INCLUDEDIR)/tsumugi

install-library: library install-headers
	$(INSTALL) -d $(addprefix $(DESTDIR),$(LIBDIR) $(PKGCONFIGDIR) $(CMAKEDIR))
	$(INSTALL) -m 644 $(staged)/libtsumugi.a $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 755 $(staged)/$(shared) $(DESTDIR)$(LIBDIR)
	ln -sf $(shared) $(DESTDIR)$(LIBDIR)/$(soname)
	ln -sf $(soname) $(DESTDIR)$(LIBDIR)/libtsumugi.so
	sed $(fill) capi/install/tsumugi.pc.in >$(DESTDIR)$(PKGCONFIGDIR)/tsumugi.pc
	sed $(fill) capi/install/tsumugi-config.cmake.in >$(DESTDIR)$(CMAKEDIR)/tsumugi-config.cmake
	sed $(fill) capi/install/tsumugi-config-version.cmake.in \
		>$(DESTDIR)$(CMAKEDIR)/tsumugi-config-version.cmake

install-command: command
	$(INSTALL) -d $(DESTDIR)$(BINDIR)
	$(INSTALL) -m 755 -s $(built)/tsumugi $(DESTDIR)$(BINDIR)

install-myth: myth
	$(INSTALL) -d $(DESTDIR)$(LIBDIR) $(DESTDIR)$(INCLUDEDIR)/myth
	$(INSTALL) -m 755 -s $(built)/libmyth.so $(DESTDIR)$(LIBDIR)/$(myth)
	ln -sf $(myth) $(DESTDIR)$(LIBDIR)/libmyth.so
	$(INSTALL) -m 644 include/compat/myth.h $(DESTDIR)$(INCLUDEDIR)/myth/myth.h

install-mpi: mpi install-headers install-command
	$(INSTALL) -d $(addprefix $(DESTDIR),$(INCLUDEDIR) $(LIBDIR) $(PKGCONFIGDIR) $(BINDIR))
	$(INSTALL) -m 755 -s $(built)/libmpi_abi.so $(DESTDIR)$(LIBDIR)/$(mpi)
	ln -sf $(mpi) $(DESTDIR)$(LIBDIR)/libmpi_abi.so
	$(INSTALL) -m 644 mpi/include/mpi.h $(DESTDIR)$(INCLUDEDIR)
	sed $(fill) mpi/install/tsumugi-mpi.pc.in >$(DESTDIR)$(PKGCONFIGDIR)/tsumugi-mpi.pc
	sed $(fill) $(fill_c) mpi/install/compiler.in >$(DESTDIR)$(BINDIR)/mpicc
	sed $(fill) $(fill_cxx) mpi/install/compiler.in >$(DESTDIR)$(BINDIR)/mpicxx
	sed $(fill) mpi/install/mpiexec.in >$(DESTDIR)$(BINDIR)/mpiexec
	chmod 755 $(addprefix $(DESTDIR)$(BINDIR)/,mpicc mpicxx mpiexec)
	ln -sf mpicxx $(DESTDIR)$(BINDIR)/mpic++
	ln -sf mpiexec $(DESTDIR)$(BINDIR)/mpirun

uninstall:
	rm -f $(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(notdir $(headers)))
	rm -f $(addprefix $(DESTDIR)$(INCLUDEDIR)/tsumugi/,$(notdir $(parts)))
	-rmdir --ignore-fail-on-non-empty $(DESTDIR)$(INCLUDEDIR)/tsumugi
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libtsumugi.a libtsumugi.so $(soname) $(shared))
	rm -f $(DESTDIR)$(PKGCONFIGDIR)/tsumugi.pc $(DESTDIR)$(BINDIR)/tsumugi
	rm -rf $(DESTDIR)$(CMAKEDIR)

uninstall-myth:
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libmyth.so $(myth)) $(DESTDIR)$(INCLUDEDIR)/myth/myth.h
	-rmdir --ignore-fail-on-non-empty $(DESTDIR)$(INCLUDEDIR)/myth

# The command and tsumugi's headers stay: they belong to `uninstall`, too.
uninstall-mpi:
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libmpi_abi.so $(mpi)) $(DESTDIR)$(INCLUDEDIR)/mpi.h
	rm -f $(DESTDIR)$(PKGCONFIGDIR)/tsumugi-mpi.pc
	rm -f $(addprefix $(DESTDIR)$(BINDIR)/,mpicc mpicxx mpic++ mpiexec mpirun)

fill = -e 's|@VERSION@|$(version)|g' -e 's|@PREFIX@|$(PREFIX)|g' \
	-e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@BINDIR@|$(BINDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
	-e 's|@SHARED@|$(shared)|g' -e 's|@SONAME@|$(soname)|g' -e 's|@SYSTEM@|$(system)|g'
fill_c = -e 's|@NAME@|mpicc|g' -e 's|@LANGUAGE@|C|g' -e 's|@OPTION@|cc|g' \
	-e 's|@VARIABLE@|TSUMUGI_MPICC|g' -e 's|@COMPILER@|cc|g'
fill_cxx = -e 's|@NAME@|mpicxx|g' -e 's|@LANGUAGE@|C++|g' -e 's|@OPTION@|cxx|g' \
	-e 's|@VARIABLE@|TSUMUGI_MPICXX|g' -e 's|@COMPILER@|c++|g'
