# Installs the C library, its headers and the command `tsumugi`.
#
#   make install PREFIX=/usr/local          builds with cargo, and installs
#   make install-library DESTDIR=/tmp/pkg   leaves the command out; a package is staged
#   make uninstall PREFIX=/usr/local
#   make install-myth PREFIX=/opt/tsumugi   libmyth.so.0 and its header <myth/myth.h>; not a
#                                           part of `install`, because MassiveThreads' own
#                                           files have these names. And uninstall-myth
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
target := $(or $(CARGO_TARGET_DIR),target)
built := $(target)/release
staged := $(target)/install
headers := include/tsumugi.h include/tsumugi.hpp include/acp.h
# What a program that is linked with the static library has to link, too.
system := -pthread -lm -ldl -lgcc_s

.PHONY: all library command myth install install-library install-command uninstall \
	install-myth uninstall-myth

all: library command

library:
	$(CARGO) build --release --package tsumugi-capi $(CARGOFLAGS)
	mkdir -p $(staged)
	cp $(built)/libtsumugi.a $(staged)/libtsumugi.a
	$(STRIP) --strip-debug $(staged)/libtsumugi.a
	$(CC) -shared -o $(staged)/$(shared) -Wl,--whole-archive $(built)/libtsumugi.a \
		-Wl,--no-whole-archive -Wl,-soname,$(soname) \
		-Wl,--version-script,capi/install/tsumugi.map -Wl,--gc-sections \
		-Wl,-z,relro,-z,now,-z,defs $(LDFLAGS) $(system)
	$(STRIP) --strip-unneeded $(staged)/$(shared)

command:
	$(CARGO) build --release --package tsumugi-cli $(CARGOFLAGS)

myth:
	$(CARGO) build --release --package tsumugi-myth $(CARGOFLAGS)

install: install-library install-command

install-library: library
	$(INSTALL) -d $(addprefix $(DESTDIR),$(INCLUDEDIR) $(LIBDIR) $(PKGCONFIGDIR) $(CMAKEDIR))
	$(INSTALL) -m 644 $(headers) $(DESTDIR)$(INCLUDEDIR)
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

uninstall:
	rm -f $(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(notdir $(headers)))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libtsumugi.a libtsumugi.so $(soname) $(shared))
	rm -f $(DESTDIR)$(PKGCONFIGDIR)/tsumugi.pc $(DESTDIR)$(BINDIR)/tsumugi
	rm -rf $(DESTDIR)$(CMAKEDIR)

uninstall-myth:
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libmyth.so $(myth)) $(DESTDIR)$(INCLUDEDIR)/myth/myth.h
	-rmdir --ignore-fail-on-non-empty $(DESTDIR)$(INCLUDEDIR)/myth

fill = -e 's|@VERSION@|$(version)|g' -e 's|@PREFIX@|$(PREFIX)|g' \
	-e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
	-e 's|@SHARED@|$(shared)|g' -e 's|@SONAME@|$(soname)|g' -e 's|@SYSTEM@|$(system)|g'
